-- The key of the row that ends the next chunk: so many rows after the last bound, in the order of the key's index.
SELECT {values}
FROM {table} FORCE INDEX ({index})
WHERE {range}
ORDER BY {order}
LIMIT 1 OFFSET {offset};
