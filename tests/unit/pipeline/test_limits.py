"""Where a backlog is cut: as late as the limits allow, at boundaries, and the same however it is walked."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.errors import BinlogFormatError
from loader.model.position import Interval, Position
from loader.pipeline.chain.limits import find_stops
from loader.reader.files import log_walk
from loader.settings import IntervalLimits
from loader.transport.file import FileTransport
from tests.unit.binlog.builder import MICROS, LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar

ORDERS = Table("shop", "orders", (integer("id"), varchar("name", 4000)))
NONE = IntervalLimits(bytes=0)

Boundary = tuple[int, int, int, int]
"""Bytes from the start of the backlog, lognum, logpos, microseconds after the first commit."""


class Backlog:
    """Log files in a folder, with transactions of so many bytes of payload at such seconds, and where each ends."""

    def __init__(self, folder: Path, files: list[list[tuple[int, int]]]) -> None:
        self.folder = folder
        self.ends: list[Boundary] = []
        passed = 0
        for lognum, transactions in enumerate(files, 1):
            log = LogBuilder()
            for payload, second in transactions:
                log.begin(micros=MICROS + second * 1_000_000)
                log.table_map(ORDERS)
                log.write(ORDERS, (1, "x" * payload))
                log.xid()
                self.ends.append((passed + log.end - 4, lognum, log.end, second))
            if lognum < len(files):
                log.rotate(f"binlog.{lognum + 1:06d}")
            (folder / f"binlog.{lognum:06d}").write_bytes(bytes(log.data))
            passed += log.end - 4
            self.end = Position("binlog", lognum, log.end)
        self.total = passed

    def stops(self, limits: IntervalLimits, start: Position | None = None) -> list[str]:
        """What the rule under test makes of it."""
        interval = Interval(start or Position("binlog", 1, 4), self.end)
        return [str(stop) for stop in find_stops(FileTransport(str(self.folder)), interval, limits)]

    def expected(self, limits: IntervalLimits) -> list[str]:
        """The same transaction by transaction."""
        found: list[str] = []
        start, since, count, last = 0, 0, 0, None
        for end in self.ends:
            at, lognum, logpos, second = end
            since = second if count == 0 else since
            over = (
                (limits.bytes and at - start > limits.bytes)
                or (limits.transactions and count >= limits.transactions)
                or (limits.seconds and second - since > limits.seconds)
            )
            if over and last:
                found.append(last)
                start, count, since = self._at(last), 0, second
                over = limits.bytes and at - start > limits.bytes
            count, last = count + 1, f"binlog.{lognum:06d}:{logpos}"
            if over:
                found.append(last)
                start, count, last = at, 0, None
        if not found or found[-1] != str(self.end):
            found.append(str(self.end))
        return found

    def _at(self, stop: str) -> int:
        return next(end[0] for end in self.ends if f"binlog.{end[1]:06d}:{end[2]}" == stop)


FILES = st.lists(st.lists(st.tuples(st.integers(0, 3000), st.integers(-5, 40)), max_size=12), min_size=1, max_size=3)
LIMITS = st.builds(
    IntervalLimits,
    bytes=st.sampled_from([0, 1, 300, 1000, 5000, 1 << 40]),
    transactions=st.sampled_from([0, 1, 2, 5]),
    seconds=st.sampled_from([0, 1, 7, 30]),
)


@settings(deadline=None, max_examples=300)
@given(FILES, LIMITS, st.sampled_from([512, 4096, log_walk.BLOCK]))
def test_the_cuts_are_those_of_the_rule(files: list[list[tuple[int, int]]], limits: IntervalLimits, block: int) -> None:
    with TemporaryDirectory() as folder, patch.object(log_walk, "BLOCK", block):
        backlog = Backlog(Path(folder), files)
        assert backlog.stops(limits) == backlog.expected(limits)


@settings(deadline=None, max_examples=50)
@given(FILES, LIMITS)
def test_going_on_from_any_cut_gives_the_same_cuts(files: list[list[tuple[int, int]]], limits: IntervalLimits) -> None:
    with TemporaryDirectory() as folder:
        backlog = Backlog(Path(folder), files)
        whole = backlog.stops(limits)
        for number, cut in enumerate(whole[:-1], 1):
            assert backlog.stops(limits, Position.parse(cut)) == whole[number:]


def test_a_huge_transaction_is_an_interval_of_its_own(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(10, 0), (10, 0), (3000, 0), (10, 0), (10, 0)]])
    ends = [f"binlog.000001:{end[2]}" for end in backlog.ends]
    assert backlog.stops(IntervalLimits(bytes=1000)) == [ends[1], ends[2], ends[4]]


def test_an_interval_may_be_as_long_as_its_limit(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(10, 0), (10, 0), (10, 0)]])
    first, second, third = (end[0] for end in backlog.ends)
    stops = [f"binlog.000001:{end[2]}" for end in backlog.ends]
    assert backlog.stops(IntervalLimits(bytes=second)) == stops[1:]
    assert backlog.stops(IntervalLimits(bytes=second - 1)) == [stops[0], stops[2]]
    assert backlog.stops(IntervalLimits(bytes=third)) == stops[2:]
    assert first < second < third


def test_a_pause_of_the_source_is_no_part_of_an_interval(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(10, 0), (10, 10), (10, 5000), (10, 5010)]])
    ends = [f"binlog.000001:{end[2]}" for end in backlog.ends]
    assert backlog.stops(IntervalLimits(bytes=0, seconds=60)) == [ends[1], ends[3]]


def test_a_commit_before_its_predecessor_cuts_nothing(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(10, 100), (10, 0), (10, 130)]])
    assert backlog.stops(IntervalLimits(bytes=0, seconds=60)) == [str(backlog.end)]


@pytest.mark.parametrize("limits", [NONE, IntervalLimits()])
def test_a_backlog_within_the_limits_is_not_walked(limits: IntervalLimits, tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(10, 0)], [(10, 0)]])
    with patch.object(FileTransport, "open", side_effect=AssertionError("opened")):
        assert backlog.stops(limits) == [str(backlog.end)]


def test_once_the_rest_fits_it_is_not_walked(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(3000, 0)], [(10, 0)]])
    (tmp_path / "binlog.000002").write_bytes(b"x" * (backlog.end.logpos))
    assert backlog.stops(IntervalLimits(bytes=3000))[-1] == str(backlog.end)


def test_groups_of_xa_transactions_count_as_the_log_has_them(tmp_path: Path) -> None:
    log = LogBuilder().prepared(ORDERS, (1, "x"))
    prepared = log.end
    log.decided()
    (tmp_path / "binlog.000001").write_bytes(bytes(log.data))
    interval = Interval(Position("binlog", 1, 4), Position("binlog", 1, log.end))
    found = find_stops(FileTransport(str(tmp_path)), interval, IntervalLimits(transactions=1))
    assert [stop.logpos for stop in found] == [prepared, log.end]


def test_cuts_before_a_damaged_event_are_given_and_none_behind(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path, [[(10, 0), (10, 0), (10, 0)]])
    path = tmp_path / "binlog.000001"
    data = bytearray(path.read_bytes())
    data[backlog.ends[2][2] - 1] ^= 1
    path.write_bytes(data)
    found: list[int] = []
    interval = Interval(Position("binlog", 1, 4), backlog.end)
    with pytest.raises(BinlogFormatError, match="checksum"), patch.object(log_walk, "BLOCK", 128):
        found.extend(
            stop.logpos for stop in find_stops(FileTransport(str(tmp_path)), interval, IntervalLimits(transactions=1))
        )
    assert found == [backlog.ends[0][2]]


def test_no_event_inside_a_transaction_is_taken_for_the_end_of_a_backlog(tmp_path: Path) -> None:
    log = LogBuilder().insert(ORDERS, (1, "x")).insert(ORDERS, (2, "y"))
    (tmp_path / "binlog.000001").write_bytes(bytes(log.data))
    ends = {at + size for at, size, kind in log.events if kind in {15, 16}}
    for at, size, _ in log.events:
        interval = Interval(Position("binlog", 1, 4), Position("binlog", 1, at + size))
        found = find_stops(FileTransport(str(tmp_path)), interval, IntervalLimits(transactions=100))
        if at + size in ends:
            assert [stop.logpos for stop in found] == [at + size]
        else:
            with pytest.raises(BinlogFormatError):
                list(found)
