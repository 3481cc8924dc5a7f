-- CHAR columns whose index compares values with the spaces that pad them, although conditions compare them without
-- (NO PAD): of MariaDB, and of MySQL's engines other than InnoDB.
SELECT COLUMN_NAME
FROM information_schema.COLUMNS
JOIN information_schema.TABLES USING (TABLE_SCHEMA, TABLE_NAME)
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND DATA_TYPE = 'char'
  AND (COLLATION_NAME LIKE '%%nopad%%' OR (COLLATION_NAME LIKE '%%0900%%' AND ENGINE <> 'InnoDB'));
