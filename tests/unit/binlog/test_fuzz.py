"""Whole events with valid checksums and impossible content give rows or a known error, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import LoaderError
from tests.unit.binlog.builder import DELETE_V1, UPDATE, WRITE, LogBuilder, packed
from tests.unit.binlog.fields import Field, Table
from tests.unit.binlog.reading import Staged, outcome

pytestmark = pytest.mark.timeout(120)
WITHOUT_METADATA = (1, 2, 3, 7, 8, 9, 10, 11, 12, 13)
METADATA = dict.fromkeys(WITHOUT_METADATA, 0) | {
    4: 1, 5: 1, 15: 2, 16: 2, 17: 1, 18: 1, 19: 1, 140: 1, 141: 2, 242: 1, 245: 1, 246: 2, 247: 2, 248: 2, 252: 1,
    254: 2, 255: 1,
}  # fmt: skip
LIKELY = {
    4: [b"\4"], 5: [b"\x08"], 15: [b"\x20\0", b"\x2c\1"], 16: [b"\1\0", b"\0\x08"], 17: [b"\0", b"\3", b"\6"],
    18: [b"\0", b"\5"], 19: [b"\1", b"\6"], 245: [b"\4"], 246: [b"\x0a\2", b"\x41\x1e", b"\1\0"], 247: [b"\xf7\1"],
    248: [b"\xf8\1"], 252: [b"\1", b"\2", b"\4"], 254: [b"\xfe\x28", b"\xee\x2c"],
    140: [b"\1", b"\4"], 141: [b"\x20\0", b"\x2c\1"], 242: [b"\4"], 255: [b"\4"],
}  # fmt: skip


COLLATIONS = [255, 255, 8, 63, 33, 11, 28, 12, 13, 7, 10, 248, 35, 54, 56, 60, 999]


def literal(value: bytes) -> bytes:
    return value


@st.composite
def columns(draw: st.DrawFn, name: str) -> Field:
    wire = draw(st.sampled_from(list(METADATA)))
    any_bytes = st.binary(min_size=METADATA[wire], max_size=METADATA[wire])
    likely = st.sampled_from(LIKELY[wire]) if wire in LIKELY else any_bytes
    metadata = draw(st.one_of(likely, likely, likely, any_bytes))
    labels = tuple(draw(st.lists(st.binary(max_size=6), max_size=12))) if wire in (247, 248) else ()
    texts = (15, 252, 254, 247, 248, 140, 141, 242)
    collation = draw(st.sampled_from(COLLATIONS)) if wire in texts else None
    return Field(name, wire, metadata, literal, draw(st.booleans()), collation, labels)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    count = draw(st.integers(0, 10))
    fields = tuple(draw(columns(f"c{index}")) for index in range(count))
    key = tuple(draw(st.lists(st.integers(0, 12), max_size=3)))
    return Table("s", "t", fields, key)


def known(found: Staged | LoaderError) -> bool:
    return isinstance(found, Staged) or found.exit_code == 4


def log_of(table: Table, kind: int, image: bytes, count: int | None = None, optional: bytes | None = None) -> bytes:
    log = LogBuilder().begin()
    log.table_map(table, optional=optional)
    present = None if count is None else bytes([0xFF] * ((count + 7) // 8))
    if count is None:
        log.rows(kind, table, [image], present=present)
    else:
        head = (100).to_bytes(6, "little") + b"\1\0" + (b"\2\0" if kind >= WRITE else b"")
        log.event(kind, head + packed(count) + (present or b"") * (2 if kind == UPDATE else 1) + image)
    log.xid()
    return bytes(log.data)


KINDS = st.sampled_from([WRITE, UPDATE, DELETE_V1])


@settings(deadline=None, max_examples=400)
@given(tables(), KINDS, st.binary(max_size=200))
def test_any_table_map_with_any_row_image(table: Table, kind: int, image: bytes) -> None:
    assert known(outcome(log_of(table, kind, image)))


SPECIAL = st.sampled_from(
    [
        b"\0",
        b"\xff",
        b"\x80",
        b"\x7f",
        b"\1\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\x0c\1x",
        b"\7\x89\5\x4b\4\0\0\0",
        b"\x09\x81\1\x78\x9c\x4b",
        b"\x8f\xa1",
        b"\xd8\0\xdc\0",
    ]
)


@settings(deadline=None, max_examples=400)
@given(tables(), KINDS, st.lists(SPECIAL | st.binary(max_size=12), max_size=40).map(b"".join))
def test_any_table_map_with_row_images_of_special_bytes(table: Table, kind: int, image: bytes) -> None:
    assert known(outcome(log_of(table, kind, bytes((len(table.fields) + 7) // 8) + image)))


@settings(deadline=None, max_examples=200)
@given(tables(), st.data())
def test_any_optional_metadata(table: Table, data: st.DataObject) -> None:
    block = bytearray(table.optional())
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(block)))
        block[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    assert known(outcome(log_of(table, WRITE, bytes(40), optional=bytes(block))))


@settings(deadline=None, max_examples=100)
@given(tables(), st.integers(0, 300), KINDS)
def test_any_column_count_of_a_row_event(table: Table, count: int, kind: int) -> None:
    assert known(outcome(log_of(table, kind, bytes(60), count=count)))


EVENTS = st.tuples(st.integers(0, 255), st.binary(max_size=60), st.sampled_from([0, 1, 0x80, 0xFFFF]))


@settings(deadline=None, max_examples=300)
@given(st.lists(EVENTS, min_size=1, max_size=8), st.booleans())
def test_any_events_in_any_order(events: list[tuple[int, bytes, int]], checksum: bool) -> None:
    log = LogBuilder(checksum=checksum)
    for kind, body, flags in events:
        log.event(kind, body, flags=flags)
    assert known(outcome(bytes(log.data)))


STEPS: dict[str, Any] = {
    "gtid": lambda log: log.gtid(),
    "mariadb": lambda log: log.mariadb_gtid(),
    "single": lambda log: log.mariadb_gtid(single=True),
    "begin": lambda log: log.query("BEGIN"),
    "commit": lambda log: log.query("COMMIT"),
    "rollback": lambda log: log.query("ROLLBACK"),
    "statement": lambda log: log.query("CREATE TABLE x (id INT)"),
    "map": lambda log: log.table_map(ONE),
    "row": lambda log: log.write(ONE, (b"\1\0\0\0",), last=False),
    "last row": lambda log: log.write(ONE, (b"\1\0\0\0",)),
    "xid": lambda log: log.xid(),
    "rotate": lambda log: log.rotate(),
}
ONE = Table("s", "t", (Field("id", 3, b"", literal),))


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from(list(STEPS)), max_size=14))
def test_well_formed_events_in_any_order(steps: list[str]) -> None:
    log = LogBuilder()
    for step in steps:
        STEPS[step](log)
    found = outcome(bytes(log.data))
    assert known(found)
    if isinstance(found, Staged):
        rows = sum(step in ("row", "last row") for step in steps)
        assert len(found.of("s.t")) == rows
        assert found.index.transactions[:, 0].tolist() == sorted(found.index.transactions[:, 0])
