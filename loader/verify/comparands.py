"""What is compared of a row: each column, and the text of each invalid date that the table's rule keeps.

The warehouse cannot hold invalid dates such as `0000-00-00`. A rule stores NULL for them, so the server returns NULL
for them as well. Its SQL decides by the calendar which dates are invalid. Nothing of the merge's casts takes part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from loader.model.table import Column, TableSchema
from loader.types.catalogue import type_of
from loader.types.column_type import Comparison, Encoding, Form
from loader.verify.expressions import comparison_of, in_warehouse, on_server, quoted

OnMisfit = Literal["error", "null", "text"]
"""See `TableRule.on_misfit`."""

_DATES = {Encoding.DATE, Encoding.DATETIME, Encoding.TIMESTAMP}
_IS_LEAP = "(YEAR({0}) % 4 = 0 AND (YEAR({0}) % 100 <> 0 OR YEAR({0}) % 400 = 0))"
_LAST_DAY = f"ELT(MONTH({{0}}), 31, 28 + {_IS_LEAP}, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)"
"""LAST_DAY accepts a day 0, and it has no 29 February of the year 0. ELT(0, ...) is NULL."""
_IS_VALID = f"DAYOFMONTH({{0}}) BETWEEN 1 AND {_LAST_DAY}"
_SECONDS = len("0000-00-00 00:00:00")


@dataclass(frozen=True)
class Comparand:
    """A value of a row that is compared.

    Attributes:
        name: of the column, or of the column with the text of its invalid dates.
        server: MySQL expression for its canonical text, or for its bytes or its number.
        warehouse: Spark expression for its canonical text.
        comparison: how these texts are compared.
        is_binary: whether `server` is the bytes of the value, which the warehouse has in the column `name`.
        source: the column of the source.
        is_misfit_text: whether it is the text of the invalid dates of that column.
    """

    name: str
    server: str
    warehouse: str
    comparison: Comparison
    source: str
    is_binary: bool = False
    is_misfit_text: bool = False


def comparands_of(schema: TableSchema, on_misfit: OnMisfit) -> tuple[Comparand, ...]:
    """Return the values that are compared of each row of a table with this rule for invalid dates."""
    may_misfit = [column for column in schema.columns if on_misfit != "error" and _may_be_invalid(column, schema)]
    texts = map(_misfit_text, may_misfit) if on_misfit == "text" else ()
    return (*(_valid_date(one) if one in may_misfit else comparand_of(one) for one in schema.columns), *texts)


def key_comparands(schema: TableSchema) -> tuple[Comparand, ...]:
    """Return the values of the key. An invalid date in a key always stops the table."""
    return tuple(comparand_of(schema.column(name)) for name in schema.key)


def comparand_of(column: Column) -> Comparand:
    """Return a column as it is."""
    return Comparand(
        name=column.name,
        server=on_server(column),
        warehouse=in_warehouse(column),
        comparison=comparison_of(column),
        source=column.name,
        is_binary=type_of(column).form is Form.HEX,
    )


def comparisons(compared: Sequence[Comparand]) -> Iterator[Comparison]:
    """Yield how each value is compared."""
    return (one.comparison for one in compared)


def _may_be_invalid(column: Column, schema: TableSchema) -> bool:
    return type_of(column).encoding in _DATES and column.name not in schema.key


def _valid_date(column: Column) -> Comparand:
    valid = _IS_VALID.format(quoted(column.name))
    server = f"CASE WHEN {valid} THEN {on_server(column)} END"
    return Comparand(column.name, server, in_warehouse(column), Comparison.TEXT, column.name)


def _misfit_text(column: Column) -> Comparand:
    valid = _IS_VALID.format(quoted(column.name))
    name = f"{column.name}__text"
    return Comparand(
        name=name,
        server=f"CASE WHEN {valid} THEN NULL ELSE {on_server(column)} END",
        warehouse=_with_fraction(quoted(name), column),
        comparison=Comparison.TEXT,
        source=column.name,
        is_misfit_text=True,
    )


def _with_fraction(text: str, column: Column) -> str:
    """Return a text of the warehouse with all digits of the column's fraction.

    A text has the digits that the column had when the row was written. ALTER TABLE may have added more since.
    """
    if not column.size or type_of(column).encoding is Encoding.DATE:
        return text
    zeros = "0000-00-00 00:00:00." + "0" * column.size
    return f"if(length({text}) >= {_SECONDS}, concat({text}, substr('{zeros}', length({text}) + 1)), {text})"
