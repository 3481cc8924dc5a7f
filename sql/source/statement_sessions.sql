-- Sessions whose binlog_format is not ROW (MySQL; MariaDB does not show it for other sessions).
SELECT threads.PROCESSLIST_ID, threads.PROCESSLIST_USER, variables.VARIABLE_VALUE
FROM performance_schema.variables_by_thread AS variables JOIN performance_schema.threads AS threads USING (THREAD_ID)
WHERE variables.VARIABLE_NAME = 'binlog_format' AND variables.VARIABLE_VALUE <> 'ROW'
  AND threads.PROCESSLIST_ID IS NOT NULL
ORDER BY threads.PROCESSLIST_ID;
