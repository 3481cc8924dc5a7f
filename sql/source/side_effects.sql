-- Objects whose changes also change other tables: views, MERGE tables, tables with triggers, parents of cascading keys.
-- The number is 1 if a statement that reads a table may change others as well: a view can call functions.
SELECT TABLE_NAME, 1 FROM information_schema.TABLES
WHERE CAST(TABLE_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
  AND (TABLE_TYPE LIKE '%VIEW' OR ENGINE IN ('MRG_MyISAM', 'FEDERATED', 'CONNECT', 'SPIDER'))
UNION ALL SELECT EVENT_OBJECT_TABLE, 0 FROM information_schema.TRIGGERS
WHERE CAST(EVENT_OBJECT_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
UNION ALL SELECT REFERENCED_TABLE_NAME, 0 FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION');
