-- Loads all rows of a table in one commit. They replace its rows or, in a history, are added to them.
{insert} {branch} {options} ({columns})
SELECT {values} FROM loader_rows
