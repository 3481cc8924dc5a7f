-- Replaces all rows of a table with the rows that another table had in a snapshot.
INSERT OVERWRITE {branch} ({columns})
SELECT {values} FROM {table} VERSION AS OF {snapshot}
