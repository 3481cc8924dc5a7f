"""Rows of row events, parsed from the text that is staged for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loader.errors import StagedDataError
from loader.model.table import TableSchema
from loader.reader.dialect import HEAD_FIELDS, Unreadable, fields_of, lines_of
from loader.reader.values import Native, Value

_OP, _SEQNO, _OFFSET, _COMMITTED, _ABSENT = range(HEAD_FIELDS)


@dataclass(frozen=True)
class Row:
    """One image of a row: a value per column, in the table's order. `row["name"]` is the value of a column."""

    schema: TableSchema
    values: tuple[Value, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the table's order."""
        return tuple(column.name for column in self.schema.columns)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{value.column.name}={value.shown}' for value in self.values)})"

    def __getitem__(self, name: str) -> Value:
        """Return the value of a column.

        Raises:
            KeyError: the table has no column of that name.
        """
        for value in self.values:
            if value.column.name == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def as_dict(self) -> dict[str, Native]:
        """Return native values by column name, without the columns that the image leaves out."""
        return {value.column.name: value.native() for value in self.values if not value.is_absent}


@dataclass(frozen=True)
class RowChange:
    """The change of one row.

    Attributes:
        before: the row before the change; None for an insert.
        after: the row after the change; None for a delete.
        row_offset: bytes from the start of the transaction to the row's image, for an update to the image after it.
    """

    before: Row | None
    after: Row | None
    row_offset: int

    @property
    def op(self) -> str:
        """`I`, `U` or `D`."""
        return "I" if self.before is None else "D" if self.after is None else "U"

    def __repr__(self) -> str:
        images = [f"{name}={row!r}" for name, row in (("before", self.before), ("after", self.after)) if row]
        return f"RowChange({self.op}, {', '.join(images)})"


@dataclass(frozen=True)
class Record:
    """A staged record.

    Attributes:
        op: `I`, `U` or `D`.
        seqno: of its transaction.
        row_offset: bytes from the start of the transaction to the row's image.
        committed_at: commit time in UTC, as staged.
        row: the row after an insert or update, or before a delete.
    """

    op: str
    seqno: int
    row_offset: int
    committed_at: str
    row: Row


def record_of(line: str, schema: TableSchema) -> Record:
    """Parse a staged line without its line feed.

    Raises:
        StagedDataError: the line is not valid, or has another number of columns.
    """
    fields = _checked(line, schema)
    op, seqno, offset, committed = (field or "" for field in fields[:_ABSENT])
    return Record(op, int(seqno), int(offset), committed, _row(fields, schema))


def changes_of(staged: bytes, schema: TableSchema, *, update: bool) -> Iterator[RowChange]:
    """Parse the staged lines of a row event. With `update`, a `D` and the `I` after it are one change.

    Raises:
        StagedDataError: a line is not valid, or has another number of columns.
    """
    before: Row | None = None
    for line in lines_of(staged):
        fields = _checked(line, schema)
        row = _row(fields, schema)
        deleted = fields[_OP] == "D"
        if update and deleted:
            before = row
            continue
        yield RowChange(row if deleted else before, None if deleted else row, int(fields[_OFFSET] or 0))
        before = None


def _checked(line: str, schema: TableSchema) -> list[str | None]:
    fields = fields_of(line)
    if len(fields) != HEAD_FIELDS + len(schema.columns):
        raise StagedDataError("a staged line does not have the columns of the table", table=schema.name)
    return fields


def _row(fields: list[str | None], schema: TableSchema) -> Row:
    absent = bytes.fromhex(fields[_ABSENT] or "")
    return Row(
        schema,
        tuple(
            Value(
                column,
                text,
                bool(absent) and bool(absent[index >> 3] >> (index & 7) & 1),
                isinstance(text, Unreadable),
            )
            for index, (column, text) in enumerate(zip(schema.columns, fields[HEAD_FIELDS:], strict=True))
        ),
    )
