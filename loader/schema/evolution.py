"""What ALTER TABLE makes of a table's schema, and where the values of its rows come from afterwards. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loader.model.table import TableName, TableSchema
from loader.schema.changes import Altered

STRICT = 1 << 21 | 1 << 22
"""Bits of sql_mode: STRICT_TRANS_TABLES, STRICT_ALL_TABLES."""


@dataclass(frozen=True)
class Step:
    """An ALTER TABLE: what it does, whether its sql_mode was strict, and the position where it stands in the log."""

    altered: Altered
    strict: bool
    position: str


@dataclass(frozen=True)
class Kept:
    """A column's values are those of the column that was called `old`.

    `longest`: when it is not None, a text of more characters that ends with a space may have lost such spaces: as long
    as no row holds one, nothing changed; else the table must be loaded again.
    """

    old: str
    longest: int | None = None


@dataclass(frozen=True)
class Added:
    """A column's value is the same in all rows: `text` as a record would be staged with it, unescaped; None is NULL."""

    text: str | None


Origin = Kept | Added


@dataclass(frozen=True)
class Evolution:
    """A table's schema after its steps, and of each of its columns where the values of older rows come from."""

    schema: TableSchema
    origins: Mapping[str, Origin]


def evolve(old: TableSchema, steps: Sequence[Step], new: TableSchema | None) -> Evolution:
    """What the steps make of `old`.

    Args:
        old: the schema before the steps.
        steps: in the order of the log; none, when no statement altered the table.
        new: the schema that the next table map tells, from FULL row metadata; None when no row follows.

    Raises:
        UnsupportedError: the values of rows that there were cannot be told from the log, or the steps do not lead to
            `new`.
    """
    raise NotImplementedError


def created_like(name: TableName, other: TableSchema) -> TableSchema:
    """The schema of CREATE TABLE name LIKE other."""
    return TableSchema(name, other.columns, other.key)
