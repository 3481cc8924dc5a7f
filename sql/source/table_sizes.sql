-- Estimated rows and bytes of all tables, without the server's own. The statistics of the engine are their source.
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH
FROM information_schema.TABLES
WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
  AND CAST(TABLE_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys');
