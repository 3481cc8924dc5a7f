"""The filter of captured tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from loader.model.table import TableName

if TYPE_CHECKING:  # the classes of documents take a tenth of the start of `loader inspect`
    from loader.staging.documents import TableFilter

_SYSTEM = frozenset({"mysql", "information_schema", "performance_schema", "sys"})


def matches(table: TableName, patterns: Iterable[str]) -> bool:
    """Return whether a table has one of these names, or matches one of these patterns over `schema.table`.

    A name that contains pattern characters also matches itself.
    """
    name = str(table)
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def find_unmatched(patterns: Iterable[str], tables: Collection[TableName]) -> str | None:
    """Return the first pattern that matches none of the tables, or None."""
    return next((one for one in patterns if not any(matches(table, [one]) for table in tables)), None)


def matches_schema(schema: str, patterns: Iterable[str]) -> bool:
    """Return whether one of these patterns over `schema.table` can match a table of this schema.

    A pattern that is the name of a table may contain pattern characters, see `matches`.
    """
    beginning = str(TableName(schema, ""))
    return any(
        pattern.startswith(beginning) or fnmatchcase(beginning, pattern[:end])
        for pattern in patterns
        for end in range(1, len(pattern) + 1)
    )


class CapturedTables:
    """Decides whether a table is captured: an inclusion matches it, and no exclusion does."""

    def __init__(self, tables: TableFilter) -> None:
        self._tables = tables

    def __call__(self, name: TableName) -> bool:
        """Return whether this table is captured. Tables of the server's own schemas never are."""
        if name.schema in _SYSTEM:
            return False
        return matches(name, self._tables.include) and not matches(name, self._tables.exclude)
