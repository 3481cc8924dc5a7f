-- The first rows of a table, to measure how fast it can be read.
SELECT {columns}
FROM {table}
LIMIT {rows};
