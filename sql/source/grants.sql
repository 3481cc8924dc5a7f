-- Privileges that the loader's user needs on the source. REPLICATION SLAVE lets it read the changes of all tables; SELECT is for
-- the initial load and may be limited to the captured schemas. MariaDB 10.5 and later: BINLOG MONITOR instead of
-- REPLICATION CLIENT.
-- Optional: SELECT and TRIGGER on *.* let the loader see which tables have triggers. Without them, a statement that a
-- session logs with binlog_format STATEMENT or MIXED stops every captured table, not only those that it names.
-- Optional: TRIGGER on the captured schemas of MariaDB before 11, to load tables with virtual columns.
-- Optional: BINLOG ADMIN on *.* of MariaDB, so that loader verify does not delay ALTER TABLE.
-- Optional: with max_replica_lag_seconds or read_from of a source, REPLICA MONITOR on *.* on MariaDB.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'loader'@'%';
GRANT SELECT ON `shop`.* TO 'loader'@'%';
