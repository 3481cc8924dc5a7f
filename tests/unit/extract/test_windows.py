"""How much of a range is held at a time changes nothing: neither the size of blocks nor what is kept of transactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from loader.binlog import index
from loader.extract import windows
from loader.extract.log_ranges import whole_segment
from loader.reader.files import log_walk
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.events.test_compressed_events import payload
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.extract.intervals import FILE, extracted, pieces_of, plan_of
from tests.unit.extract.test_range_cutting import built

ITEMS = Table("shop", "items", (integer("id"), integer("line"), varchar("text")), key=(0, 1))

_STEPS: list[object] = [
    [(0, 3, 100), (1, 5, 0), (2, 1, 300)],
    "CREATE TABLE shop.x (a INT)",
    [(0, 1, 20)],
    [(0, 12, 400), (0, 12, 400), (1, 2, 0), (0, 9, 399), (2, 2, 2)],
    "padding",
    [(1, 1, 0)],
]


def log_of() -> bytes:
    log: LogBuilder = built(_STEPS)
    return bytes(log.data)


@pytest.mark.parametrize("size", [19, 64, 700, 5_000, 100_000])
def test_the_size_of_blocks_changes_nothing(size: int, tmp_path: Path) -> None:
    log = log_of()
    plan = plan_of(log, include=["shop.*"], part_bytes=4096)
    whole = whole_segment(FILE, 1, 4, len(log), plan.part_bytes)
    expected = extracted(log, plan, tmp_path / "default", [whole])
    assert len(expected.files) > 3
    with patch.object(log_walk, "BLOCK", size), patch.object(windows, "BLOCK", size):
        found = extracted(log, plan, tmp_path / "small", [whole])
    assert found.files == expected.files
    assert found.manifest == expected.manifest


def compressed_log() -> bytes:
    """Transactions in payloads, some of several, among plain ones and XA transactions."""
    log = LogBuilder()
    for number in range(1, 5):
        inner = LogBuilder(checksum=False)
        start = inner.end
        inner.query("BEGIN")
        for line in range(7 * number):
            inner.table_map(ITEMS)
            inner.write(ITEMS, (number, line, "x" * line))
        inner.xid()
        log.gtid()
        log.event(40, payload(bytes(inner.data[start:])))
        log.insert(ITEMS, *((number, line, "y") for line in range(100, 100 + 3 * number)))
        log.prepared(ITEMS, (number, 500, "z"), (number, 501, "z"), xid=f"{number:02x}")
    for number in range(1, 5):
        log.decided(xid=f"{number:02x}")
    return bytes(log.data)


@pytest.mark.parametrize("make", [log_of, compressed_log])
@pytest.mark.parametrize("most", [1, 2, 5, 30])
@pytest.mark.parametrize("size", [64, 5_000, 100_000])
def test_how_many_row_events_of_a_transaction_are_kept_changes_nothing(
    make: Callable[[], bytes], most: int, size: int, tmp_path: Path
) -> None:
    log = make()
    plan = plan_of(log, include=["shop.*"], part_bytes=4096)
    whole = whole_segment(FILE, 1, 4, len(log), plan.part_bytes)
    expected = extracted(log, plan, tmp_path / "default", [whole])
    assert expected.files
    with patch.object(index, "LONG", most), patch.object(log_walk, "BLOCK", size), patch.object(windows, "BLOCK", size):
        found = extracted(log, plan, tmp_path / "small", [whole])
        split = extracted(log, plan, tmp_path / "split", pieces_of(log, plan, tmp_path / "split", 9))
    assert found.files == split.files == expected.files
    assert found.manifest == expected.manifest
    assert split.manifest.balance == expected.manifest.balance
