-- The last version of each changed key that is still there.
INSERT INTO {branch} ({columns})
SELECT {values} FROM loader_changes
WHERE _op <> 'D'
