-- The rows of one chunk.
SELECT {columns}
FROM {table}{index}
WHERE {range};
