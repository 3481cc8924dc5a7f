-- How the server purges its log by itself: MySQL, MariaDB (max_binlog_total_size, from 11.4 on), Percona (binlog_space_limit).
SHOW GLOBAL VARIABLES WHERE Variable_name IN (
  'binlog_expire_logs_seconds', 'expire_logs_days', 'binlog_expire_logs_auto_purge',
  'max_binlog_total_size', 'binlog_space_limit', 'max_binlog_size', 'slave_connections_needed_for_purge'
);
