-- Whether a range of keys has a row.
SELECT 1
FROM {table}{index}
WHERE {range}
LIMIT 1;
