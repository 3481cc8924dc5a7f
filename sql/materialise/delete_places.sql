-- Marks rows as deleted by file and position. Only files with values inside the range are read, and none of their columns.
DELETE FROM {branch}
WHERE {within}
  AND (_file, _pos) IN (SELECT file, pos FROM loader_places)
