-- Tables whose rows are in memory only.
SELECT TABLE_SCHEMA, TABLE_NAME
FROM information_schema.TABLES
WHERE ENGINE = 'MEMORY' AND TABLE_TYPE = 'BASE TABLE'
  AND CAST(TABLE_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
ORDER BY TABLE_SCHEMA, TABLE_NAME;
