-- A key that is NULL, or that several rows have.
SELECT {key}, count(*) FROM {table}
GROUP BY {key}
HAVING count(*) > 1 OR {nulls}
LIMIT 1
