-- The key of a row in a range of keys: so many rows after the first, in the order of the key's index or against it.
SELECT {values}
FROM {table} FORCE INDEX ({index})
WHERE {range}
ORDER BY {order}
LIMIT 1 OFFSET {offset};
