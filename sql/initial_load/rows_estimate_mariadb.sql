-- How many rows a range of keys has, as the server estimates it from a few pages of the index.
EXPLAIN
SELECT 1
FROM {table} USE INDEX ({index})
WHERE {range};
