-- One row for each grant by which the user of the session sees the triggers of a table, without grants of its roles. A grant
-- names a database by a pattern.
WITH me AS (
  SELECT CONCAT(
    '''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1),
    '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), ''''
  ) AS grantee
)
SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES JOIN me USING (grantee)
WHERE PRIVILEGE_TYPE = 'TRIGGER'
UNION ALL SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES JOIN me USING (grantee)
WHERE PRIVILEGE_TYPE = 'TRIGGER' AND %(schema)s LIKE TABLE_SCHEMA
UNION ALL SELECT PRIVILEGE_TYPE FROM information_schema.TABLE_PRIVILEGES JOIN me USING (grantee)
WHERE PRIVILEGE_TYPE = 'TRIGGER' AND TABLE_SCHEMA = %(schema)s AND TABLE_NAME = %(table)s;
