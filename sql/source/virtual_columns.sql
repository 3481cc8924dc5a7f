-- Virtual columns of a table, with their types and expressions.
SELECT COLUMN_NAME, DATA_TYPE, GENERATION_EXPRESSION
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE '%%VIRTUAL%%';
