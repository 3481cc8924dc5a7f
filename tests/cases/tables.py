"""A table of the warehouse beside the source's: its rows as text, and where they are not those of the source."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier
from loader.materialise.rules import TableRule
from loader.model.table import Column, TableName, TableSchema
from loader.source.schemas import read_schemas
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from loader.types.column_type import Comparison
from loader.verify.expressions import comparison_of, in_warehouse, on_server
from tests.cases.showing import Numbers, order

Row = dict[str, str | None]


@dataclass(frozen=True)
class Table:
    """All rows of a table.

    Attributes:
        types: of its columns in Spark, by name.
        rows: by name of the column.
        source: the source's schema of it now; None where it has no such table.
        theirs: the source's rows, and
        ours: the warehouse's, as text by which both can be compared.
    """

    name: TableName
    rule: TableRule
    types: dict[str, str]
    rows: list[Row]
    source: TableSchema | None
    theirs: list[tuple[str | None, ...]]
    ours: list[tuple[str | None, ...]]

    @classmethod
    def read(cls, warehouse: Warehouse, server: ServerAddress, name: TableName, rule: TableRule) -> Table:
        source = _schema(server, name)
        frame = warehouse.session.table(warehouse.name(name))
        columns = _in_warehouse(source, rule).columns if source else ()
        shown = [_shown(column, kind) for column, kind in frame.dtypes]
        compared = [f"{_compared(column, frame.columns)} as `compared {n}`" for n, column in enumerate(columns)]
        found = [tuple(row) for row in frame.selectExpr(*shown, *compared).collect()]
        width = len(frame.columns)
        return cls(
            name=name,
            rule=rule,
            types=dict(frame.dtypes),
            rows=[dict(zip(frame.columns, row[:width], strict=True)) for row in found],
            source=source,
            theirs=_server_rows(server, source) if source else [],
            ours=[tuple(map(_canonical, columns, row[width:])) for row in found],
        )

    def lines(self, numbers: Numbers) -> list[str]:
        """The columns with their types, and the rows in an order of their own."""
        head = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
        first = [self.rule.seqno_column, self.rule.row_offset_column] if self.rule.mode == "history" else []
        rows = sorted(self.rows, key=lambda row: order([row[name] for name in first] + list(row.values())))
        return [head, *(numbers.row(row, self.types, self.rule) for row in rows)]

    def differences(self) -> list[str]:
        """Rows that the source has and the warehouse has not, and the other way round."""
        if self.source is None:
            return []
        theirs = Counter(self._forgiven(row) for row in self.theirs)
        ours = Counter(self._standing())
        found = [f"{self.name}, only on the server: {row}" for row in (theirs - ours).elements()]
        return found + [f"{self.name}, only in the warehouse: {row}" for row in (ours - theirs).elements()]

    def _standing(self) -> list[tuple[str | None, ...]]:
        """The rows that are there: of a history the last one of each key, unless it is a deletion."""
        pairs = list(zip(self.rows, self.ours, strict=True))
        if self.rule.mode == "soft_delete":
            return [ours for row, ours in pairs if row[self.rule.deleted_column] == "false"]
        if self.rule.mode == "mirror" or self.source is None:
            return self.ours
        seqno, offset, op = self.rule.seqno_column, self.rule.row_offset_column, self.rule.op_column
        pairs.sort(key=lambda pair: (int(pair[0][seqno] or 0), int(pair[0][offset] or 0)))
        key = _in_warehouse(self.source, self.rule).key
        last = {tuple(row[name] for name in key): (row[op], ours) for row, ours in pairs}
        return [ours for op, ours in last.values() if op != "D"]

    def _forgiven(self, row: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """A row of the source with NULL for dates that are none, where the rule says so."""
        columns = self.source.columns if self.source and self.rule.on_misfit == "null" else ()
        return (
            tuple(None if _no_date(c, text) else text for c, text in zip(columns, row, strict=True)) if columns else row
        )


def _schema(server: ServerAddress, name: TableName) -> TableSchema | None:
    with connected(server) as connection:
        with connection.cursor() as cursor:
            sql = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
            if not cursor.execute(sql, (name.schema, name.table)):
                return None
        return read_schemas(connection, [name])[0]


def _in_warehouse(schema: TableSchema, rule: TableRule) -> TableSchema:
    """The schema with the names that its columns have in the warehouse."""
    layout = Layout(schema, rule)
    columns = tuple(replace(column, name=layout.name(column.name)) for column in schema.columns)
    return replace(schema, columns=columns, key=layout.key)


def _server_rows(server: ServerAddress, schema: TableSchema) -> list[tuple[str | None, ...]]:
    expressions = ", ".join(on_server(column) for column in schema.columns)
    with connected(server) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {expressions} FROM {identifier(schema.name.schema)}.{identifier(schema.name.table)}")
        return [tuple(map(_canonical, schema.columns, row)) for row in cursor.fetchall()]


def _shown(column: str, kind: str) -> str:
    name = identifier(column)
    return f"lower(hex({name})) as {name}" if kind == "binary" else f"cast({name} as string) as {name}"


def _compared(column: Column, there: list[str]) -> str:
    """Return the expression of a column's text, which is compared: where a value does not fit, its text column."""
    text = f"{column.name}__text"
    if column.name not in there:
        return "'there is no such column'"
    return f"coalesce({in_warehouse(column)}, {identifier(text)})" if text in there else in_warehouse(column)


def _canonical(column: Column, text: str | bytes | None) -> str | None:
    if isinstance(text, bytes):
        return text.hex().upper()
    if text is None or comparison_of(column) not in {Comparison.SINGLE, Comparison.DOUBLE}:
        return text
    value = float(text)
    return repr(struct.unpack("f", struct.pack("f", value))[0] if column.type == "float" else value)


def _no_date(column: Column, text: str | None) -> bool:
    if text is None or column.type not in {"date", "datetime", "timestamp"}:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return True
    return False
