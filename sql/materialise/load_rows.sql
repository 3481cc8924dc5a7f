-- All rows of a table, in place of those it has or, in a history, beside them: one commit.
{insert} {branch} ({columns})
SELECT {values} FROM loader_rows
