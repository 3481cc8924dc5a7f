-- What the loader's user needs on the source. REPLICATION SLAVE lets it read the changes of all tables; SELECT is for
-- the initial load and may be limited to the captured schemas. MariaDB 10.5 and later: BINLOG MONITOR instead of
-- REPLICATION CLIENT.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'loader'@'%';
GRANT SELECT ON `shop`.* TO 'loader'@'%';
