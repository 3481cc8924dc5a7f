-- Generated columns of a table of MariaDB, stored and virtual ones.
SELECT COLUMN_NAME
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND IS_GENERATED = 'ALWAYS'
ORDER BY ORDINAL_POSITION;
