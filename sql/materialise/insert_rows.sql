-- Inserts the last version of each changed row that still exists; in some table modes, of every changed row.
INSERT INTO {branch} {options} ({columns})
SELECT {values} FROM loader_changes
WHERE {kept}
