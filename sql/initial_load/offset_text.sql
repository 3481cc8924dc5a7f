-- A row of a chunk whose text may hold a time with a time zone offset.
SELECT 1
FROM {table}{index}
WHERE ({range}) AND ({texts})
LIMIT 1;
