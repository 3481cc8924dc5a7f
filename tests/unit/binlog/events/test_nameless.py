"""Table maps without column names: with a schema that a caller gives, or by type and position."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from loader.binlog.format import HEAD_BYTES, read_format
from loader.binlog.index import Walk
from loader.binlog.table_registry import TableRegistry
from loader.errors import DataError, LoaderError
from loader.model.table import SchemaVersion, TableSchema
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, char, decimal, enum, integer, json, varchar
from tests.unit.binlog.reading import FILE, GuardedStager, everything, fields, records, staged

TABLE = Table(
    "shop", "t", (integer("id", unsigned=True), varchar("name"), decimal("price", 10, 2), enum("state", ["a", "b"]), json())
)  # fmt: skip
MINIMAL = b"\1\1\x80\2\3\xfc\xff\0"  # signs, and one character set for all texts
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
    timing = stager.timing(index.transactions)
    stager.stage(np.frombuffer(log, np.uint8).copy(), 0, registry.assign_programs(index.rows, timing.seqnos), timing)
    return [fields(line)[5:] for line in records(b"".join(found))]


def full() -> TableSchema:
    (schema,) = staged(log_of()).counts
    return schema


def test_a_given_schema_stages_what_full_metadata_would() -> None:
    (expected,) = [line[5:] for line in staged(log_of()).of("shop.t")]
    registry = TableRegistry(everything, known=lambda _: full(), nameless=True)
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
    with pytest.raises(DataError, match="does not match the log") as caught:
        read(log_of(optional=b""), TableRegistry(everything, known=lambda _: wrong, nameless=True))
    assert caught.value.where["column"] == columns[number].name


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (0, {"unsigned": False}, "the log has int unsigned, the schema int"),
        (1, {"charset": "latin1"}, "the log has varchar utf8mb4, the schema varchar latin1"),
        (1, {"type": "varbinary", "charset": ""}, "the log has varchar utf8mb4, the schema varbinary"),
    ],
)
def test_signs_and_character_sets_of_the_log_are_compared(number: int, change: dict[str, object], why: str) -> None:
    columns = list(full().columns)
    columns[number] = replace(columns[number], **change)  # type: ignore[arg-type]
    wrong = TableSchema(full().name, tuple(columns), full().key)
    with pytest.raises(DataError, match="does not match the log") as caught:
        read(log_of(optional=MINIMAL), TableRegistry(everything, known=lambda _: wrong, nameless=True))
    assert (caught.value.where["column"], caught.value.why) == (columns[number].name, why)


def test_the_log_tells_a_character_set_that_the_schema_leaves_open() -> None:
    columns = list(full().columns)
    columns[1] = replace(columns[1], charset="")
    given = TableSchema(full().name, tuple(columns), full().key)
    registry = TableRegistry(everything, known=lambda _: given, nameless=True)
    (line,) = read(log_of(optional=MINIMAL), registry)
    assert (registry.programs[0].schema, line[1]) == (full(), "é")
    with pytest.raises(DataError) as caught:
        read(log_of(optional=b""), TableRegistry(everything, known=lambda _: given, nameless=True))
    assert caught.value.why == "neither the log nor a statement says its character set"


def test_rows_under_one_table_map_have_the_columns_of_their_transaction() -> None:
    columns = list(full().columns)
    columns[1] = replace(columns[1], name="renamed")
    renamed = TableSchema(full().name, tuple(columns), full().key)
    log, ends = LogBuilder(), list[int]()
    for _ in range(4):
        log.begin()
        log.table_map(TABLE, optional=b"")
        log.write(TABLE, ROW)
        log.xid()
        ends.append(10**12 + len(log.data))
    versions = [
        SchemaVersion(ends[0], "f:1", full()), SchemaVersion(ends[1], "f:2", renamed), SchemaVersion(ends[3], "f:3", None, "lost")
    ]  # fmt: skip
    until = bytes(log.data)[: ends[2] - 10**12]
    registry = TableRegistry(everything, versions=lambda _: versions)
    assert len(read(until, registry)) == 3
    assert [program.schema for program in registry.programs] == [full(), renamed]
    assert registry.schema_numbers[:2].tolist() == [0, 1]
    assert registry.unstaged == {}
    registry = TableRegistry(everything, versions=lambda _: versions)
    assert len(read(bytes(log.data), registry)) == 3
    unread = registry.unstaged[full().name]
    assert (unread.seqno, unread.at, unread.error.why) == (ends[3], "f:3", "lost")
    assert ends[2] - 10**12 < unread.event < ends[3] - 10**12
    registry = TableRegistry(everything, versions=lambda _: versions[1:])
    assert len(read(until, registry)) == 2
    unread = registry.unstaged[full().name]
    assert (unread.seqno, unread.error.why) == (ends[0], "no statement before this position created it")


def test_rows_that_their_schema_does_not_fit_are_left_out_and_noted_where_they_begin() -> None:
    wrong = TableSchema(full().name, full().columns[:-1], full().key)
    end = 10**12 + len(log_of(optional=b""))
    registry = TableRegistry(everything, versions=lambda _: [SchemaVersion(0, "f:1", wrong)])
    assert read(log_of(optional=b""), registry) == []
    unread = registry.unstaged[full().name]
    assert (unread.seqno, unread.at, unread.error.what) == (
        end,
        "",
        "the schema given for a table does not match the log",
    )


def test_a_schema_with_another_number_of_columns_is_refused() -> None:
    wrong = TableSchema(full().name, full().columns[:-1], full().key)
    with pytest.raises(DataError, match="does not match the log"):
        read(log_of(optional=b""), TableRegistry(everything, known=lambda _: wrong, nameless=True))


def test_without_names_and_schema_columns_have_positions_and_types() -> None:
    registry = TableRegistry(everything, nameless=True)
    (line,) = read(log_of(optional=b""), registry)
    assert line == ["7", "é".encode().hex(), "1.50", "2", None]
    assert [(c.name, c.type) for c in registry.programs[0].schema.columns] == [
        ("@1", "int"), ("@2", "varbinary"), ("@3", "decimal"), ("@4", "tinyint"), ("@5", "json"),
    ]  # fmt: skip
    assert registry.programs[0].schema.key == ()


def test_nothing_is_added_to_a_char_or_binary_without_a_character_set() -> None:
    """The log does not tell one from the other, and holds a BINARY without its last zero bytes."""
    log = LogBuilder().begin()
    table = Table("shop", "t", (integer("id"), char("c", 20), char("d", 300)))
    log.table_map(table, optional=b"")
    log.write(table, (1, "abc", ""))
    log.xid()
    registry = TableRegistry(everything, nameless=True)
    assert list(read(bytes(log.data), registry)) == [["1", "616263", ""]]
    assert [str(column) for column in registry.programs[0].schema.columns[1:]] == ["varbinary", "varbinary"]


def test_names_are_asked_for_otherwise() -> None:
    with pytest.raises(LoaderError, match="the log has no column names"):
        read(log_of(optional=b""), TableRegistry(everything))


def test_a_definition_that_completes_types_gives_no_names() -> None:
    """Such as those of a plan, which are of one moment."""
    with pytest.raises(LoaderError, match="the log has no column names"):
        read(log_of(optional=b""), TableRegistry(everything, known=lambda _: full()))
