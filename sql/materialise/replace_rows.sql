-- All rows of a table, in place of those it has: one commit.
INSERT OVERWRITE {branch} ({columns})
SELECT {values} FROM loader_rows
