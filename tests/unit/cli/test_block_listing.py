"""A listing in blocks is the listing of each event and value, whatever the log."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.cli.listing import blocks, event_templates, row_formats, template_arrays
from loader.cli.listing.blocks import BlockListing
from loader.cli.listing.event_templates import steps_of
from loader.cli.listing.json_lines import JsonLines
from loader.cli.listing.row_formats import RowFormats
from loader.cli.listing.selection import Form, Selection
from loader.cli.listing.text import Listing
from loader.cli.listing.unreadable_values import UnreadableCount
from loader.errors import BinlogFormatError, DataError
from loader.reader.events import RowsEvent
from loader.reader.log import open_log
from tests.unit.binlog.builder import LogBuilder, packed
from tests.unit.binlog.fields import (
    LATIN1,
    Table,
    bit,
    blob,
    date,
    datetime,
    decimal,
    enum,
    floating,
    geometry,
    integer,
    set_of,
    time,
    timestamp,
    varchar,
    vector,
    year,
)  # fmt: skip
from tests.unit.binlog.fields import json as document
from tests.unit.reader.logs import ORDERS, blocks_of, busy, read, written

EVERY = Selection(only_rows=False, operations="IUD", limit=0)
FORMS: list[Callable[[], Form]] = [
    lambda: Listing(headers=False), lambda: Listing(headers=True), lambda: JsonLines(headers=False),
    lambda: JsonLines(headers=True, bigint_as_text=True),
]  # fmt: skip
WIDE = Table(
    "a.b", "wïde",
    (
        integer("id", 8, unsigned=True), varchar("two\nlines"), decimal("d"), blob("b", 4), set_of("s", ["x", "y\\"]),
        enum("e", ['q"', ""]), floating("f", 8), datetime("at", 6), document("j"), bit("t", 64),
    ),
    key=(1, 0),
)  # fmt: skip
TYPES = Table(
    "types", "others",
    (
        integer("tiny", 1), integer("small", 2, unsigned=True), integer("medium", 3), floating("single", 4), date(), year(),
        time("tm", 3), timestamp("ts", 6), varchar("l", 100, LATIN1), geometry(), vector(), set_of("one", ["", '"', ","]),
        enum("ä\x1b", ["\0", "\u2028", "\\"]),
    ),
    key=(),
)  # fmt: skip
DOUBLE = int.from_bytes(struct.pack("<d", -0.1), "little")
TEXTS = [
    "", "\\N", "\\", "\\0", "\0", "\\\\0", "\n", "\r\n", '"', '""', ",", '","', "\t\x1b[31m", "\x85\u2028\u202e", "é😀", "NULL",
    "\\x41", "a\\", "'", "\\n", "x" * 300, "\x7f", "\u061c\u200e\u2066\u20ff\u2100", "1234567\n", "12345678",
]  # fmt: skip


def log_of_texts() -> LogBuilder:
    log = LogBuilder()
    for number, value in enumerate(TEXTS):
        data = b"\0\xff" * (70_000 if number == 0 else 70)
        rest = (Decimal("-0.50"), data, 3, 2, DOUBLE, (2024, 2, 29, 1, 2, 3, 5), b"\x0c\x02\\\x00", 2**63)
        log.insert(WIDE, (2**64 - 1 - number, value, *rest), (number, None, *[None] * 8), number=2 * number + 1)
        log.begin(2 * number + 2)
        log.table_map(WIDE)
        before = (number, value, None, b"", 0, 1, DOUBLE, None, None, 0)
        log.update(WIDE, (before, (number, value + "!", *rest)), last=False)
        log.delete(WIDE, before)
        log.xid()
    return log


def log_of_types() -> LogBuilder:
    """All other types, with zero dates, partial images and unreadable values, in versions 1 and 2 of row events."""
    log = LogBuilder(checksum=False)
    full = (-128, 65535, -(2**23), 0x7F7FFFFF, (0, 0, 0), 0, (True, 838, 59, 59, 999_000), (0, 0), b"\xe9\x80\x9d")
    rest = (b"\0" * 4 + b"\1" * 21, [1.5, -2.25], 7, 1)
    log.insert(TYPES, (*full, *rest), [None] * 13, number=1)
    log.insert(
        TYPES, (1, 0, 0, 1, (2024, 0, 31), 1901, (False, 0, 0, 0, 0), (2**32 - 1, 1), "", b"\0" * 4, [0.0], 0, 2)
    )
    log.begin(5)
    log.table_map(TYPES)
    log.rows(24, TYPES, [TYPES.image((5,), (0,)), TYPES.image((6, None), (0, 12))], present=b"\1\0\1\x10", last=False)
    log.rows(25, TYPES, [TYPES.image((2, 3), (1, 3))], present=b"\x0a\0")
    log.xid()
    log.insert(WIDE, (1, b"\xff", *[None] * 8))
    log.insert(TYPES, (1, *[None] * 11, 9))
    return log


def log_of_mariadb() -> LogBuilder:
    log = LogBuilder(server="11.8.3-MariaDB")
    for number in (7, 9, 11):
        log.mariadb_gtid(number)
        log.event(160, "INSERT 'x\\' \"é\0\n\t\x85".encode())
        log.table_map(WIDE)
        log.write(WIDE, (number, "x", *[None] * 8), kind=23)
        log.xid()
        log.mariadb_gtid(number + 1, single=True)
        log.query("TRUNCATE t", "s")
    return log


def log_of_outcomes() -> LogBuilder:
    """Transactions that end in other ways than with an XID, and GTID events of old servers."""
    log = LogBuilder()
    log.prepared(TYPES, (1, *[None] * 12)).decided()
    for end in ("COMMIT", "ROLLBACK"):
        log.gtid(micros=0)
        log.query("BEGIN")
        log.event(29, b"\x08SELECT \xff" if end == "ROLLBACK" else b"\x06SELECT")
        log.table_map(TYPES)
        log.write(TYPES, (1, *[None] * 12))
        log.query(end)
    for kind in (33, 34):
        log.gtid(kind=kind)
        log.query("BEGIN", "busy")
        log.query("UPDATE t", "s")
        log.query("UPDATE u", "s")
        log.xid()
    log.query("CREATE TABLE x (a INT)", "s")
    return log


def log_of_payloads() -> LogBuilder:
    log = LogBuilder()
    for number in (1, 2):
        inner = LogBuilder(checksum=False)
        start = inner.end
        inner.query("BEGIN")
        inner.table_map(WIDE)
        inner.write(WIDE, (number, "x", *[None] * 8))
        inner.xid()
        events = bytes(inner.data[start:])
        log.gtid(number)
        fields = b"".join(
            packed(n) + packed(len(packed(v))) + packed(v) for n, v in ((2, 255), (3, len(events)), (1, len(events)))
        )
        log.event(40, fields + packed(0) + events)
        log.insert(WIDE, (number, "y", *[None] * 8), number=number + 10)
    return log


def log_of_tables() -> LogBuilder:
    """A long row of a second table, which becomes an object, between staged rows of the first one."""
    log = LogBuilder()
    for number in range(1, 4):
        log.insert(ORDERS, (number, f"order {number}"))
        log.insert(WIDE, (number, "x" * 900, *[None] * 8))
    return log


LOGS: list[Callable[[], LogBuilder]] = [
    log_of_texts, log_of_types, log_of_mariadb, log_of_outcomes, log_of_payloads, log_of_tables, lambda: busy(6),
    lambda: busy(4, checksum=False),
]  # fmt: skip


def in_blocks(path: Path, form: Form, selection: Selection = EVERY, tables: Sequence[str] = ()) -> str:
    found: list[bytes] = []
    with open_log(f"file://{path}", tables=tables, lenient=True) as log:
        BlockListing(form, selection, found.append, UnreadableCount(), lambda _: None).list(log)
    return b"".join(found).decode()


def event_by_event(path: Path, form: Form, selection: Selection = EVERY, tables: Sequence[str] = ()) -> str:
    """The same with an object per event and value."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowFormats, "rows", lambda *_: None)
        events = read(path, lenient=True, tables=tables)
        chosen, seqnos = [], list[int]()
        for event in filter(selection.has, events):
            seqno = event.transaction.seqno if event.transaction else None
            if seqno and seqno not in seqnos:
                if 0 < selection.limit == len(seqnos):
                    break
                seqnos.append(seqno)
            chosen.append(form.text(event))
        return "".join(chosen)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("built", LOGS)
def test_both_ways_list_the_same(built: Callable[[], LogBuilder], form: Callable[[], Form], tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(built().data)])
    assert in_blocks(path, form()) == event_by_event(path, form())


@pytest.mark.parametrize("form", FORMS)
def test_the_sizes_of_blocks_do_not_matter(
    form: Callable[[], Form], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written(tmp_path / "log", [bytes(busy(40).data), bytes(log_of_mariadb().data)], index=True)
    wanted = [event_by_event(path, form()) for path in paths]
    blocks_of(500, monkeypatch)
    monkeypatch.setattr(blocks, "BLOCK", 500)
    monkeypatch.setattr(blocks, "_CHUNK", 150)
    monkeypatch.setattr(blocks, "_OUT_BYTES", 100)
    monkeypatch.setattr(row_formats, "_OUT_BYTES", 100)
    monkeypatch.setattr(template_arrays, "_MOST", 2)
    assert [in_blocks(path, form()) for path in paths] == wanted


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("selection", "tables"),
    [
        (Selection(only_rows=True, operations="UD", limit=0), ()),
        (Selection(only_rows=True, operations="I", limit=2), ()),
        (Selection(only_rows=True, operations="IUD", limit=0), ("shop.lines",)),
        (Selection(only_rows=False, operations="IUD", limit=3), ()),
    ],
)  # fmt: skip
def test_both_ways_select_the_same(
    selection: Selection, tables: Sequence[str], form: Callable[[], Form], tmp_path: Path
) -> None:
    (path,) = written(tmp_path, [bytes(busy(6).data)])
    found = in_blocks(path, form(), selection, tables)
    assert found == event_by_event(path, form(), selection, tables)
    assert "lines" in found or selection.operations == "I"


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])) | st.text("\\\"0nx,'\n\0é\x85\u2028", max_size=20),
            st.integers(0, 2**64 - 1).filter(lambda bits: bits >> 52 & 0x7FF != 0x7FF),
            st.integers(0, 2**32 - 1).filter(lambda bits: bits >> 23 & 0xFF != 0xFF),
            st.floats(-1e23, 1e23) | st.integers(-(10**17), 10**17).map(float),
        ),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_any_text_and_number(rows: list[tuple[str, int, int, float]]) -> None:
    table = Table("s", "t", (blob("v", 4, 255), floating("d", 8), floating("f", 4), floating("n", 8)))
    log = LogBuilder()
    log.insert(table, *((*row[:3], int.from_bytes(struct.pack("<d", row[3]), "little")) for row in rows))
    log.insert(table, *((*row[:3], int.from_bytes(struct.pack("<d", row[3]), "little")) for row in rows))
    with TemporaryDirectory() as folder:
        (path,) = written(Path(folder), [bytes(log.data)])
        for form in FORMS[1:3]:
            assert in_blocks(path, form()) == event_by_event(path, form())


def test_kernels_list_what_they_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would compare one way with itself: only the first events of a kind become objects."""
    (path,) = written(tmp_path, [bytes(busy(60).data)])
    listed: list[str] = []
    text = Listing.text
    monkeypatch.setattr(Listing, "text", lambda self, event: listed.append(event.header.name) or text(self, event))
    in_blocks(path, Listing(headers=False))
    assert len(read(path)) > 480
    assert listed.count("XID") < 6
    assert listed.count("UPDATE_ROWS") < 6


def test_a_text_that_looks_like_a_mark_makes_no_template(tmp_path: Path) -> None:
    named = Table("s", str(event_templates._BASES[0] + 1), (integer("id"),))
    (path,) = written(tmp_path, [bytes(LogBuilder().insert(named, (1,)).insert(named, (2,)).data)])
    event = next(event for event in read(path) if isinstance(event, RowsEvent))
    assert steps_of(event, lambda marked: JsonLines(headers=False).sample(marked, fresh=True)) is None
    assert in_blocks(path, JsonLines(headers=False)) == event_by_event(path, JsonLines(headers=False))


def test_what_precedes_an_error_is_listed(tmp_path: Path) -> None:
    data = bytearray(busy(6).data)
    data[-60] ^= 1
    (path,) = written(tmp_path, [bytes(data)])
    found: list[bytes] = []
    with open_log(f"file://{path}", lenient=True) as log, pytest.raises(BinlogFormatError):
        BlockListing(Listing(False), EVERY, found.append, UnreadableCount(), lambda _: None).list(log)
    assert b"".join(found).count(b"SEQ# = ") >= 6


def test_unreadable_values_are_counted_and_bytes_are_reported(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(log_of_types().data)])
    count, advanced = UnreadableCount(), list[int]()
    with open_log(f"file://{path}", lenient=True) as log:
        total = log.size()
        BlockListing(Listing(False), EVERY, lambda _: None, count, advanced.append).list(log)
    assert sum(advanced) == total == path.stat().st_size - 4
    with pytest.raises(DataError, match="2 values could not be read"):
        count.check()
