-- Tables with virtual columns.
SELECT DISTINCT TABLE_SCHEMA, TABLE_NAME
FROM information_schema.COLUMNS
WHERE EXTRA LIKE '%VIRTUAL%'
  AND CAST(TABLE_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
ORDER BY TABLE_SCHEMA, TABLE_NAME;
