-- Marks rows as deleted by where they are. Only files whose values are within the range are read, and of them no column.
DELETE FROM {branch}
WHERE {within}
  AND (_file, _pos) IN (SELECT file, pos FROM loader_places)
