-- The settings of the log that decide what it contains.
SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'binlog\_%'
    OR Variable_name IN ('log_replica_updates', 'log_slave_updates', 'gtid_slave_pos', 'wsrep_on');
