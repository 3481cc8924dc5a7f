"""Which tables an interval captures."""

from __future__ import annotations

from fnmatch import fnmatchcase

from loader.model.table import TableName
from loader.staging.documents import TableFilter

_SYSTEM = frozenset({"mysql", "information_schema", "performance_schema", "sys"})


class Captured:
    """Whether a table is captured: one of the inclusions matches `schema.table`, and no exclusion."""

    def __init__(self, tables: TableFilter) -> None:
        self._tables = tables

    def __call__(self, name: TableName) -> bool:
        """Whether this table is."""
        full = str(name)
        if name.schema in _SYSTEM:
            return False
        return any(fnmatchcase(full, pattern) for pattern in self._tables.include) and not any(
            fnmatchcase(full, pattern) for pattern in self._tables.exclude
        )
