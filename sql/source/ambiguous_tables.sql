-- Tables of one schema with a column that MariaDB's log does not describe completely.
SELECT TABLE_NAME
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s
  AND (DATA_TYPE IN ('uuid', 'inet4', 'inet6', 'vector') OR COLUMN_TYPE LIKE '%%/* mariadb-5.3 */');
