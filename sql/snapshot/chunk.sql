-- The rows of one chunk.
SELECT {columns}
FROM {table} FORCE INDEX ({index})
WHERE {range};
