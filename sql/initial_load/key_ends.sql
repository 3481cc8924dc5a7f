-- The lowest and the highest key of a table.
SELECT MIN({key}), MAX({key})
FROM {table} FORCE INDEX ({index});
