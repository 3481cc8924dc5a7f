"""Rows that are listed straight from their staged lines are those that are listed value by value."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from loader.cli.listing import json_lines, text
from loader.cli.listing.json_lines import JsonLines
from loader.cli.listing.plain_rows import plain_changes
from loader.cli.listing.text import Listing
from loader.reader.events import Event, RowsEvent
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, bit, blob, datetime, decimal, enum, floating, integer, set_of, varchar
from tests.unit.binlog.fields import json as document
from tests.unit.reader.logs import busy, read, written

WIDE = Table(
    "a.b", "wïde",
    (
        integer("id", 8, unsigned=True), varchar("two\nlines"), decimal("d"), blob("b", 4), set_of("s", ["x", "y\\"]),
        enum("e", ['q"', ""]), floating("f", 8), datetime("at", 6), document("j"), bit("t", 64),
    ),
    key=(1, 0),
)  # fmt: skip
DOUBLE = int.from_bytes(struct.pack("<d", -0.1), "little")
TEXTS = [
    "", "\\N", "\\", "\\0", "\0", "\\\\0", "\n", "\r\n", '"', '""', ",", '","', "\t\x1b[31m", "\x85\u2028\u202e", "é😀", "NULL",
    "\\x41", "a\\", "'", "\\n", "x" * 300,
]  # fmt: skip


def log_of_texts() -> LogBuilder:
    log = LogBuilder()
    rest = (Decimal("-0.50"), b"\0\xff" * 70_000, 3, 2, DOUBLE, (2024, 2, 29, 1, 2, 3, 5), b"\x0c\x02\\\x00", 2**63)
    for number, value in enumerate(TEXTS):
        log.insert(WIDE, (2**64 - 1 - number, value, *rest), (number, None, *[None] * 8), number=2 * number + 1)
        log.begin(2 * number + 2)
        log.table_map(WIDE)
        before = (number, value, None, b"", 0, 1, DOUBLE, None, None, 0)
        log.update(WIDE, (before, (number, value + "!", *rest)), last=False)
        log.delete(WIDE, before)
        log.xid()
    return log


def both(printed: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    fast = printed()
    for module in (text, json_lines):
        monkeypatch.setattr(module, "plain_changes", lambda _: None)
    return fast, printed()


@pytest.mark.parametrize("built", [log_of_texts, lambda: busy(6)])
def test_both_ways_list_the_same(
    built: Callable[[], LogBuilder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = written(tmp_path, [bytes(built().data)])
    events = read(path)
    rows = [event for event in events if isinstance(event, RowsEvent)]
    assert rows
    assert all(plain_changes(event) for event in rows)

    def printed() -> list[str]:
        listing, lines = (
            Listing(headers=True),
            [JsonLines(headers=False, bigint_as_text=flag) for flag in (False, True)],
        )
        found: list[str] = []
        for event in events:
            found += "\n".join(listing.lines(event)).split("\n")
            found += [one.line(event) for one in lines]
        return found

    fast, slow = both(printed, monkeypatch)
    assert fast == slow


def test_rows_with_absent_or_unreadable_values_are_listed_value_by_value(tmp_path: Path) -> None:
    table = Table("s", "t", (integer("id"), varchar("v")))
    log = LogBuilder()
    log.begin(1)
    log.table_map(table)
    log.rows(30, table, [table.image((1,), (0,))], present=b"\x01", last=False)
    log.write(table, (2, b"\xff"))
    log.xid()
    (path,) = written(tmp_path, [bytes(log.data)])
    rows: list[Event] = [event for event in read(path, lenient=True) if isinstance(event, RowsEvent)]
    assert [plain_changes(event) for event in rows if isinstance(event, RowsEvent)] == [None, None]
