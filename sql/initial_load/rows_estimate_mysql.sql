-- How many rows a range of keys has, as the server estimates it from a few pages of the index. With FORCE INDEX
-- it does not.
EXPLAIN FORMAT = TRADITIONAL
SELECT 1
FROM {table} USE INDEX ({index})
WHERE {range};
