"""The GTIDs of a range are those that its transactions have, however it is split into ranges and blocks."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError, DataError, GapError
from loader.extract import windows
from loader.extract.checkpoint import find_log_difference, read_checkpoint
from loader.extract.gtids import marks as gtids_of
from loader.extract.gtids.marks import GtidTally, gtid_set
from loader.extract.log_ranges import whole_segment
from loader.extract.manifest_writer import build_manifest
from loader.extract.range_result import RangeResult
from loader.model.gtid import GtidSet, MariadbGtid, mariadb_set, mysql_set, parse_gtid_set, source_of
from loader.model.identity import Identity
from loader.model.position import Position
from loader.reader.files import log_walk
from loader.reader.files.log_walk import log_bytes
from loader.source.continuity import LogReplaced
from loader.staging.chain import Checkpoint
from loader.transport.file import FileTransport
from tests.unit.binlog.builder import LogBuilder
from tests.unit.extract.intervals import FILE, plan_of
from tests.unit.reader.test_event_bodies import tagged

UUIDS = [bytes(range(16)), bytes(range(1, 17)), b"\xff" * 16]

# Numbers mostly rise, as a server gives them out, but not always: replicas commit out of order.
GTIDS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40)), max_size=60, unique=True)


def mysql_log(gtids: list[tuple[int, int]]) -> LogBuilder:
    log = LogBuilder()
    for source, number in gtids:
        log.event(33, b"\1" + UUIDS[source] + number.to_bytes(8, "little") + bytes(25))
        log.query("CREATE TABLE shop.x (a INT)")
    return log


def tallied(log: bytes, *ends: int) -> tuple[GtidSet, int]:
    """The set over ranges that end at these bytes and at the end; where the last transaction begins."""
    parts, last = [], 0
    with TemporaryDirectory() as folder:
        Path(folder, FILE).write_bytes(log)
        for first, end in zip((4, *ends), (*ends, len(log)), strict=True):
            with FileTransport(folder).open(FILE, first, end) as file:
                opened = log_bytes(file, FILE)
                tally = GtidTally(opened.form.mariadb)
                span = whole_segment(FILE, 1, first, end, 1 << 20)
                registry = TableRegistry(lambda _: False, mariadb=opened.form.mariadb)
                for window in windows.read_windows(opened, span, registry, 1 << 20):
                    tally.add(opened, window, first, end)
                parts += tally.parts()
                last = max(last, tally.mark(opened).last)
                mariadb = opened.form.mariadb
    return gtid_set(parts, mariadb=mariadb), last


@settings(max_examples=60, deadline=None)
@given(GTIDS, st.data())
def test_every_transaction_counts_once(gtids: list[tuple[int, int]], data: st.DataObject) -> None:
    log = mysql_log(gtids)
    starts = [at for at, _, kind in log.events if kind == 33]
    ends = sorted(data.draw(st.sets(st.sampled_from(starts[1:]), max_size=3))) if len(starts) > 1 else []
    expected = mysql_set((source_of(UUIDS[source]), number, number) for source, number in gtids)
    size, many = data.draw(st.sampled_from([64, 700, 1 << 20])), data.draw(st.sampled_from([0, 3, 100]))
    with (
        patch.object(log_walk, "BLOCK", size),
        patch.object(windows, "BLOCK", size),
        patch.object(gtids_of, "_MANY", many),
    ):
        found, last = tallied(bytes(log.data), *ends)
    assert found == expected
    assert last == (starts[-1] if starts else 0)


def test_more_sources_than_there_is_room_for_at_first() -> None:
    log = LogBuilder()
    for number in range(1, 101):
        log.event(33, b"\1" + number.to_bytes(16, "little") + (7).to_bytes(8, "little") + bytes(25))
        log.query("CREATE TABLE shop.x (a INT)")
    expected = mysql_set((source_of(number.to_bytes(16, "little")), 7, 7) for number in range(1, 101))
    assert tallied(bytes(log.data))[0] == expected


def test_tagged_and_anonymous_transactions() -> None:
    log = LogBuilder()
    for number, tag in ((5, "blue"), (6, "blue"), (5, "red_1"), (1, "b" * 32)):
        log.event(42, tagged({2: number * 2, 4: 0, 5: 0, 6: 1}, tag))
        log.query("CREATE TABLE shop.x (a INT)")
    log.gtid(kind=34)
    log.query("CREATE TABLE shop.x (a INT)")
    log.event(33, b"\1" + UUIDS[0] + (9).to_bytes(8, "little") + bytes(25))
    log.query("CREATE TABLE shop.x (a INT)")
    found = str(tallied(bytes(log.data))[0])
    uuid = found.split(":", maxsplit=1)[0]
    assert f":{'b' * 32}:1:blue:5-6:red_1:5" in found
    assert len(uuid) == 36
    assert f"{source_of(UUIDS[0])}:" in found


def test_mariadb_s_domains() -> None:
    log = LogBuilder(server="11.4.2-MariaDB-log")
    for domain, sequence in ((0, 1), (0, 2), (7, 1), (0, 5), (7, 2), (0, 4)):
        log.event(162, sequence.to_bytes(8, "little") + domain.to_bytes(4, "little") + b"\1" + bytes(6))
        log.query("CREATE TABLE shop.x (a INT)")
    assert tallied(bytes(log.data))[0] == mariadb_set([MariadbGtid(0, 1, 5), MariadbGtid(7, 1, 2)])


def closed(before: str, *results: RangeResult) -> str:
    plan = plan_of(b"", 4, 100).model_copy(update={"stop": f"{FILE[:-1]}2:100"})
    return build_manifest(plan, Checkpoint(Position.parse(f"{FILE}:4"), before, None), [], results).gtids


def test_a_set_goes_on_from_interval_to_interval_and_over_files() -> None:
    uuid = source_of(UUIDS[0])
    one = RangeResult(file=FILE, before=f"{uuid}:1-3", gtids=((uuid, 4, 6),))
    two = RangeResult(file=f"{FILE[:-1]}2", before=f"{uuid}:1-6", gtids=((uuid, 7, 7),))
    assert closed(f"{uuid}:1-3", one, two) == f"{uuid}:1-7"
    with pytest.raises(GapError, match="log files lack some of its transactions") as lost:
        closed(f"{uuid}:1-2", one, two)
    assert f"{uuid}:3" in lost.value.why
    with pytest.raises(GapError, match="log files lack some of its transactions"):
        closed(f"{uuid}:1-3", two)
    with pytest.raises(DataError, match="repeats transactions") as again:
        closed(f"{uuid}:1-5", one)
    assert f"{uuid}:4-5" in again.value.why


@pytest.mark.parametrize(
    ("known", "first", "before", "lost"),
    [
        ("0-1-3", (), "0-1-3", ""),
        ("0-1-3", (), "0-1-2", "0-1-3"),
        ("0-1-3", (), "", "0-1-3"),
        ("0-1-3", (("0-1", 1, 5),), "0-1-5", ""),
        ("0-1-3", (("0-1", 1, 5),), "0-1-4", "0-1-5"),
        ("0-1-3,5-1-1", (("0-1", 1, 5),), "0-1-5", ""),  # the server forgot domain 5
        ("0-1-3,5-1-1", (("5-1", 1, 2),), "0-1-3", "5-1-2"),  # domain 5 is in the previous file
        ("", (), "", ""),
    ],
)
def test_a_mariadb_file_starts_after_what_was_read(
    known: str, first: tuple[tuple[str, int, int], ...], before: str, lost: str
) -> None:
    results = RangeResult(file=FILE, gtids=first), RangeResult(file=f"{FILE[:-1]}2", before=before)
    identity = Identity(kind="mariadb", version="11.4.2-MariaDB", server_id=1)
    plan = plan_of(b"", 4, 100).model_copy(update={"stop": f"{FILE[:-1]}2:100", "identity": identity})
    here = Checkpoint(Position.parse(f"{FILE}:4"), known, None)
    if not lost:
        build_manifest(plan, here, [], results)
        return
    with pytest.raises(LogReplaced, match="does not continue the file before it") as caught:
        build_manifest(plan, here, [], results)
    assert f"not after {lost}:" in caught.value.why
    if not first:  # of another server, so that it may follow
        build_manifest(plan.model_copy(update={"read_before": known}), here, [], results)


def test_the_mark_of_a_position_is_found_again_or_not(tmp_path: Path) -> None:
    log = mysql_log([(0, 1), (0, 2)])
    end = log.end
    log.gtid(3)
    log.query("CREATE TABLE shop.x (a INT)")
    raw = bytes(log.data)
    (tmp_path / FILE).write_bytes(raw)
    transport = FileTransport(str(tmp_path))
    here = read_checkpoint(transport, Position.at(FILE, end), len(raw))
    assert here.gtids == f"{source_of(UUIDS[0])}:1-2"
    assert here.mark and here.mark.last == log.events[3][0]
    assert find_log_difference(transport, here) == ""
    start = read_checkpoint(transport, Position.at(FILE, 4), len(raw))
    assert start.gtids == "" and find_log_difference(transport, start) == ""
    other = bytearray(raw)
    other[here.mark.last + 30] ^= 1
    (tmp_path / FILE).write_bytes(other)
    assert find_log_difference(transport, here) == f"another transaction begins at {here.mark.last}"
    assert find_log_difference(transport, start) == ""
    other = bytearray(LogBuilder(server="8.4.1").data) + raw[LogBuilder().end :]
    (tmp_path / FILE).write_bytes(other)
    assert "its first event" in find_log_difference(transport, here)
    with pytest.raises(BinlogFormatError):
        read_checkpoint(transport, Position.at(FILE, end - 7), len(raw))


def test_a_cut_gtid_event_is_damage() -> None:
    log = LogBuilder()
    log.event(33, b"\1" + UUIDS[0])
    log.query("CREATE TABLE shop.x (a INT)")
    with pytest.raises(BinlogFormatError):
        tallied(bytes(log.data))


@given(GTIDS, GTIDS)
def test_unions_are_those_of_the_members(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first, second, both = (
        mysql_set((source_of(UUIDS[source]), number, number) for source, number in gtids)
        for gtids in (one, other, one + other)
    )
    assert first | second == both == parse_gtid_set(str(second | first))
