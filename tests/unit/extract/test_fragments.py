"""Intervals with row events in fragments: the files of the same log uncut but for positions, however they are extracted."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from loader.binlog import index
from loader.errors import BinlogFormatError
from loader.extract import windows
from loader.extract.log_ranges import whole_segment
from loader.reader.files import log_walk
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.fragments import events, fragmented, of_bytes
from tests.unit.extract.intervals import FILE, extracted, pieces_of, plan_of

ITEMS = Table("shop", "items", (integer("id"), integer("line"), varchar("text", 8000)), key=(0, 1))
ORDERS = Table("shop", "orders", (integer("id"), varchar("name")))
PART = 4096


def log_of(transactions: int = 9) -> bytes:
    """Transactions that are larger and larger, among XA transactions that are decided at the end."""
    log = LogBuilder(server="12.3.1-MariaDB-log")
    for number in range(1, transactions):
        log.begin(number)
        for line in range(number):
            log.table_map(ITEMS)
            log.write(ITEMS, *((number, line * 10 + n, "x" * 97 * line) for n in range(3)))
            log.table_map(ORDERS, 101)
            log.update(ORDERS, ((line, "a"), (line, "b")), table_id=101)
        log.xid()
    for xid in ("61", "62"):
        log.prepared(ITEMS, *((int(xid), line, "y" * 500) for line in range(9)), xid=xid)
    log.decided("COMMIT", "62").decided("ROLLBACK", "61")
    return bytes(log.data)


PLAIN = log_of()
CUT = fragmented(PLAIN, of_bytes(150))


def bare(files: dict[str, bytes]) -> dict[str, list[bytes]]:
    """Lines by table, in their order, without the seqno."""
    found: dict[str, list[bytes]] = {}
    for key, text in sorted(files.items(), key=lambda item: ("-xa-" in item[0], item[0])):
        lines = (b",".join(line.split(b",", 2)[::2]) for line in text.splitlines())
        found.setdefault(key.split("/shop/")[-1].split("/")[0], []).extend(lines)
    return found


def test_the_lines_are_those_of_the_log_uncut_and_the_account_closes(tmp_path: Path) -> None:
    plain, cut = (
        extracted(log, plan_of(log, part_bytes=PART), tmp_path / name, [whole_segment(FILE, 1, 4, len(log), PART)])
        for name, log in (("plain", PLAIN), ("cut", CUT))
    )
    assert len(cut.files) > 6
    assert sum("-xa-" in key for key in cut.files) == 1
    assert bare(cut.files) == bare(plain.files)
    before, after = plain.manifest.balance, cut.manifest.balance
    assert before
    assert after
    assert after.bytes == len(CUT) - 4
    fragments = sum(event[4] == 172 for event in events(CUT))
    assert after.event_types == {**before.event_types, "PARTIAL_ROW_DATA": fragments}
    assert (after.row_events_staged, after.row_events_held, after.row_events_released) == (
        before.row_events_staged, before.row_events_held, before.row_events_released,
    )  # fmt: skip


@pytest.mark.parametrize("pieces", [2, 5, 40])
@pytest.mark.parametrize("size", [19, 700, 100_000])
def test_neither_the_size_of_blocks_nor_the_ranges_change_anything(size: int, pieces: int, tmp_path: Path) -> None:
    plan = plan_of(CUT, part_bytes=PART)
    expected = extracted(CUT, plan, tmp_path / "whole", [whole_segment(FILE, 1, 4, len(CUT), PART)])
    with patch.object(log_walk, "BLOCK", size), patch.object(windows, "BLOCK", size):
        found = extracted(CUT, plan, tmp_path / "pieces", pieces_of(CUT, plan, tmp_path / "pieces", pieces))
    assert found.files == expected.files
    assert found.manifest == expected.manifest


@pytest.mark.parametrize("kept", [0, 1, 3, 7])
def test_how_many_row_events_of_a_transaction_are_kept_changes_nothing(kept: int, tmp_path: Path) -> None:
    plan = plan_of(CUT, part_bytes=PART)
    whole = whole_segment(FILE, 1, 4, len(CUT), PART)
    expected = extracted(CUT, plan, tmp_path / "all", [whole])
    with patch.object(index, "LONG", kept), patch.object(log_walk, "BLOCK", 700), patch.object(windows, "BLOCK", 700):
        found = extracted(CUT, plan, tmp_path / "few", [whole])
    assert found.files == expected.files
    assert found.manifest == expected.manifest


def test_an_interval_does_not_end_inside_a_group(tmp_path: Path) -> None:
    at = 4
    for event in events(CUT):
        if event[4] == 172:
            with pytest.raises(BinlogFormatError):
                plan = plan_of(CUT, stop=at + len(event), part_bytes=PART)
                extracted(CUT, plan, tmp_path, [whole_segment(FILE, 1, 4, at + len(event), PART)])
        at += len(event)
        if at > 6000:
            return
