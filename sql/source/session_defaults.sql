-- The time zone and the SQL modes of sessions that set neither.
SELECT IF(@@global.time_zone = 'SYSTEM', @@system_time_zone, @@global.time_zone), @@global.sql_mode;
