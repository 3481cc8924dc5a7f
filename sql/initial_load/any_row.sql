-- Whether a row of a table fulfils a condition.
SELECT 1
FROM {table}{index}
WHERE {range}
LIMIT 1;
