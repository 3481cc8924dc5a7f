-- Sequences of MariaDB, which its log has as tables.
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
WHERE TABLE_TYPE = 'SEQUENCE'
ORDER BY TABLE_SCHEMA, TABLE_NAME;
