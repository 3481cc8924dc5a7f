-- All rows that another table had in a snapshot, in place of those that are there.
INSERT OVERWRITE {branch} ({columns})
SELECT {values} FROM {table} VERSION AS OF {snapshot}
