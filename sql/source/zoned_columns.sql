-- Virtual columns of a table, with their expressions, if sessions of the server have another time zone than UTC by default.
SELECT COLUMN_NAME, GENERATION_EXPRESSION
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE '%%VIRTUAL%%'
  AND IF(@@global.time_zone = 'SYSTEM', @@system_time_zone, @@global.time_zone)
      NOT IN ('UTC', 'GMT', 'Etc/UTC', 'Etc/GMT', '+00:00');
