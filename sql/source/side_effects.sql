-- Objects whose changes also change other tables: views, MERGE tables, tables with triggers, parents of cascading keys.
SELECT TABLE_NAME FROM information_schema.TABLES
WHERE CAST(TABLE_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
  AND (TABLE_TYPE LIKE '%VIEW' OR ENGINE IN ('MRG_MyISAM', 'FEDERATED', 'CONNECT', 'SPIDER'))
UNION ALL SELECT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS
WHERE CAST(EVENT_OBJECT_SCHEMA AS BINARY) NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
UNION ALL SELECT REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION');
