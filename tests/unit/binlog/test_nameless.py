"""Table maps without column names: with a schema that a caller gives, or by type and position."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from loader.binlog.format import HEAD_BYTES, read_format
from loader.binlog.index import Walk
from loader.binlog.registry import TableRegistry
from loader.errors import DataError, LoaderError
from loader.model.table import TableSchema
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, decimal, enum, integer, json, varchar
from tests.unit.binlog.reading import FILE, GuardedStager, everything, fields, records, staged

TABLE = Table(
    "shop", "t", (integer("id", unsigned=True), varchar("name"), decimal("price", 10, 2), enum("state", ["a", "b"]), json())
)  # fmt: skip
ROW = (7, "é", Decimal("1.50"), 2, None)


def log_of(**metadata: bytes) -> bytes:
    log = LogBuilder().begin()
    log.table_map(TABLE, **metadata)
    log.write(TABLE, ROW)
    log.xid()
    return bytes(log.data)


def read(log: bytes, registry: TableRegistry) -> list[list[str | None]]:
    form = read_format(log[:HEAD_BYTES], FILE)
    walk = Walk(registry, FILE, 4, form.checksum, (0, 1 << 62))
    walk.feed(np.frombuffer(log[4:], np.uint8).copy())
    index, found = walk.finish(), []
    stager = GuardedStager(registry, FILE, 1, form.checksum, 0, False, lambda _, lines: found.append(bytes(lines)))
    stager.give_room(1 << 16)
    stager.stage(np.frombuffer(log, np.uint8).copy(), 0, index.rows, stager.timing(index.transactions))
    return [fields(line)[5:] for line in records(b"".join(found))]


def full() -> TableSchema:
    (schema,) = staged(log_of()).counts
    return schema


def test_a_given_schema_stages_what_full_metadata_would() -> None:
    (expected,) = [line[5:] for line in staged(log_of()).of("shop.t")]
    registry = TableRegistry(everything, known=lambda _: full())
    assert read(log_of(optional=b""), registry) == [expected]
    assert [program.schema for program in registry.programs] == [full()]


@pytest.mark.parametrize(
    ("number", "change"),
    [(0, {"type": "bigint"}), (1, {"type": "text"}), (2, {"scale": 3}), (3, {"labels": ("x",) * 300}),
     (3, {"type": "set"}), (4, {"type": "longtext", "charset": "utf8mb4"})],
)  # fmt: skip
def test_a_schema_that_does_not_fit_is_refused_by_column(number: int, change: dict[str, object]) -> None:
    columns = list(full().columns)
    columns[number] = replace(columns[number], **change)  # type: ignore[arg-type]
    wrong = TableSchema(full().name, tuple(columns), full().key)
    with pytest.raises(DataError, match="not that of the log") as caught:
        read(log_of(optional=b""), TableRegistry(everything, known=lambda _: wrong))
    assert caught.value.where["column"] == columns[number].name


def test_a_schema_with_another_number_of_columns_is_refused() -> None:
    wrong = TableSchema(full().name, full().columns[:-1], full().key)
    with pytest.raises(DataError, match="not that of the log"):
        read(log_of(optional=b""), TableRegistry(everything, known=lambda _: wrong))


def test_without_names_and_schema_columns_have_positions_and_types() -> None:
    registry = TableRegistry(everything, nameless=True)
    (line,) = read(log_of(optional=b""), registry)
    assert line == ["7", "é".encode().hex(), "1.50", "2", None]
    assert [(c.name, c.type) for c in registry.programs[0].schema.columns] == [
        ("@1", "int"), ("@2", "varbinary"), ("@3", "decimal"), ("@4", "tinyint"), ("@5", "json"),
    ]  # fmt: skip
    assert registry.programs[0].schema.key == ()


def test_names_are_asked_for_otherwise() -> None:
    with pytest.raises(LoaderError, match="the log has no column names"):
        read(log_of(optional=b""), TableRegistry(everything))
