-- Marks the rows of all changed keys as deleted. The range prunes files, which a join does not do for
-- merge-on-read; IN becomes a left semi join with the keys broadcast, so only key columns are read.
DELETE FROM {branch}
WHERE {within}
  AND ({key}) IN (SELECT {hint} {key_columns} FROM loader_changed_keys)
