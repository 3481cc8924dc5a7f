-- Privileges of the user of the session on everything, without those of its roles.
SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
WHERE GRANTEE = CONCAT(
  '''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1),
  '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), ''''
);
