-- The last version of each changed key that is still there; or, as the mode of the table says, of all.
INSERT INTO {branch} {options} ({columns})
SELECT {values} FROM loader_changes
WHERE {kept}
