-- Tables with triggers that run before an UPDATE, as far as the user may see them. MariaDB 12 has triggers of several events.
SELECT DISTINCT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE
FROM information_schema.TRIGGERS
WHERE ACTION_TIMING = 'BEFORE' AND EVENT_MANIPULATION LIKE '%UPDATE%';
