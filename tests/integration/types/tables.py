"""A table of generated columns on a real server: written, and its log compared with what the server shows of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from loader.binlog.index import Walk
from loader.binlog.stager import Stager
from loader.binlog.table_registry import TableRegistry
from loader.model.position import Position
from loader.model.table import TableSchema
from loader.reader.files.log_walk import log_bytes
from loader.source.schemas import read_schemas
from loader.transport.server.connection import connected
from tests.integration.binlog.source import Row, Source, name_of, table_rows
from tests.integration.types.kind import Kind
from tests.unit.binlog.reading import fields, records

MOVED = 10_000  # what is added to a key that changes


@dataclass
class Lines:
    """Staged records of a table, and their text."""

    schema: TableSchema
    text: bytes
    found: list[list[str | None]]

    def left_out(self, line: list[str | None]) -> set[int]:
        """The columns that a record's image leaves out."""
        bits = int.from_bytes(bytes.fromhex(line[4] or ""), "little")
        return {index for index in range(len(self.schema.columns)) if bits >> index & 1}


def staged(source: Source, known: TableSchema, start: Position, stop: Position) -> Lines:
    """What the log of a table holds between two marks, read with the schema that its caller knows."""
    registry = TableRegistry(
        lambda name: name == known.name, mariadb=source.kind == "mariadb", known=lambda _: known, nameless=True
    )
    written: list[bytes] = []
    with source.files.open(start.file, start.logpos, stop.logpos) as log:
        form = log_bytes(log, start.file).form
        log.seek(start.logpos)
        data = np.frombuffer(log.read(stop.logpos - start.logpos), np.uint8).copy()
    walk = Walk(registry, start.file, start.logpos, form.checksum, (0, 2**62))
    assert walk.feed(data) == len(data)
    index = walk.finish()
    stager = Stager(
        registry, start.file, start.lognum, form.checksum, 0, False, lambda _, text: written.append(bytes(text))
    )
    stager.stage(data, start.logpos, index.rows, stager.timing(index.transactions))
    text = b"".join(written)
    return Lines(registry.programs[0].schema, text, [fields(line) for line in records(text)])


class TypedTable:
    """A table with an `id` and the columns `n0`, `n1`, ... of some kinds; a number of rows, each with other values."""

    def __init__(
        self, source: Source, name: str, kinds: Sequence[Kind], random: Random | None = None, least: int = 0
    ) -> None:
        self.source = source
        self.name = name
        self.kinds = kinds
        self.random = random
        self.rows = max(least, *(len(kind.edges) for kind in kinds)) + 1
        columns = ", ".join(f"n{n} {kind.declared}" for n, kind in enumerate(kinds))
        source.run(
            f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} (id INT PRIMARY KEY, {columns}) ROW_FORMAT=DYNAMIC"
        )
        with connected(source.address) as connection:
            self.schema = read_schemas(connection, [name_of(source, name)])[0]
        self._written = [n for n, kind in enumerate(kinds) if kind.edges]
        # MariaDB leaves virtual columns out of MINIMAL images of updates, changed or not; from 11 on all generated
        # columns, and out of FULL images too.
        generated = {n + 1 for n, kind in enumerate(kinds) if not kind.edges}
        self.not_followed = generated if source.kind == "mariadb" else set()

    def _value(self, column: int, number: int) -> str:
        kind = self.kinds[column]
        if number % (self.rows) == self.rows - 1 and "NOT NULL" not in kind.declared:
            return "NULL"
        return kind.value(number, self.random)

    def insert(self) -> None:
        """All rows; a value of each kind stands in every row."""
        names = ", ".join(f"n{n}" for n in self._written)
        self._run(
            f"INSERT INTO {self.name} (id, {names}) VALUES ({row}, {', '.join(self._value(n, row + n) for n in self._written)})"
            for row in range(self.rows)
        )

    def update(self) -> None:
        """Another half of the columns of every row, so that each image leaves out others."""
        self._run(
            f"UPDATE {self.name} SET "
            + ", ".join(
                f"n{n} = {self._value(n, row + n + 1)}" for n in self._written if (row + n) % 2 or n == self._written[0]
            )
            + f" WHERE id = {row}"
            for row in range(self.rows)
        )

    def move(self) -> None:
        """Another key for every row."""
        self._run([f"UPDATE {self.name} SET id = id + {MOVED}"])

    def delete(self) -> None:
        """No row is left."""
        self._run([f"DELETE FROM {self.name}"])

    def shown(self) -> dict[str, Row]:
        """The table as the server shows it, by key."""
        return {str(row[0]): row for row in table_rows(self.source, self.schema)}

    def logged(self, write: Callable[[], Any]) -> Lines:
        """What the log has of `write`."""
        start = self.source.mark()
        write()
        return staged(self.source, self.schema, start, self.source.mark())

    def _run(self, statements: Any) -> None:
        self.source.run("BEGIN", *statements, "COMMIT")


def check(lines: Lines, before: dict[str, Row], after: dict[str, Row], not_followed: set[int]) -> int:
    """Compare records with the table before and after their statements; the number of values that were compared.

    A value that an image has is the server's; one that it leaves out of an update is what it was, but for columns that
    are `not_followed`.
    """
    wrong, count = [], 0
    for line in lines.found:
        key = str(line[5])
        expected = before[key] if line[0] == "D" else after[key]
        left_out = lines.left_out(line)
        for index, (column, value, other) in enumerate(zip(lines.schema.columns, line[5:], expected, strict=True)):
            if index in left_out:
                old = before.get(key) or before.get(str(int(key) - MOVED))
                if line[0] in "UI" and old and old[index] != other and index and index not in not_followed:
                    wrong.append(f"{line[0]} {key}, {column.name} {column}: changed and left out")
                continue
            count += 1
            if value != other:
                at = next((n for n, (a, b) in enumerate(zip(str(value), str(other), strict=False)) if a != b), 0)
                place = f"{line[0]} {key}, {column.name} {column} {column.charset}, from character {at} on"
                wrong.append(f"{place}: {str(value)[at : at + 80]!r} is not {str(other)[at : at + 80]!r}")
    assert not wrong, f"{len(wrong)} of {count} values differ:\n" + "\n".join(wrong[:30])
    return count


def run(table: TypedTable) -> int:
    """Insert, update, move and delete all rows, and compare what is logged; the number of values that were compared."""
    counted = 0
    state: dict[str, Row] = {}
    for write, letters in ((table.insert, "I"), (table.update, "U"), (table.move, "DI"), (table.delete, "D")):
        lines = table.logged(write)
        shown = table.shown()
        silent = state.keys() - {str(line[5]) for line in lines.found} if letters == "U" else set()
        assert all(state[key] == shown[key] for key in silent), "a change was not logged"
        assert [line[0] for line in lines.found] == list(letters) * (table.rows - len(silent))
        counted += check(lines, state, shown, table.not_followed)
        state = shown
    return counted
