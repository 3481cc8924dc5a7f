-- The columns of all unique keys of some tables of one schema, in the order of each key.
SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, COALESCE(SUB_PART, 0), NULLABLE, INDEX_TYPE
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME IN %s AND NON_UNIQUE = 0
ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX;
