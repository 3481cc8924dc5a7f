"""Following a log: from file to file, over a tail that is still written, with handlers in between."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loader.errors import BinlogFormatError, GapError
from loader.model.position import Position
from loader.reader.events import Event, QueryEvent, RotateEvent, WriteRowsEvent, XidEvent
from loader.reader.handlers import ContentHandler
from loader.reader.log import open_log
from tests.unit.binlog.builder import LogBuilder
from tests.unit.reader.logs import busy, names, read, written


def rotated(first: int, next_file: str) -> bytes:
    log = busy(2, first=first)
    log.rotate(next_file)
    return bytes(log.data)


@pytest.mark.parametrize("index", [False, True])
def test_from_file_to_file(tmp_path: Path, index: bool) -> None:
    logs = [rotated(1, "binlog.000002"), rotated(3, "binlog.000003"), bytes(busy(1, first=5).data)]
    written(tmp_path, logs, index=index)
    events = read(tmp_path)
    assert [event.header.file[-1] for event in events if isinstance(event, RotateEvent)] == ["1", "2"]
    numbers = dict.fromkeys(str(e.transaction.gtid).rpartition(":")[2] for e in events if e.transaction)
    assert list(numbers) == ["1", "2", "3", "1003", "4", "5"]
    assert read(tmp_path / "binlog.000002") == [event for event in events if event.header.file == "binlog.000002"]


@pytest.mark.parametrize("index", [False, True])
def test_a_missing_file_is_a_gap_that_names_it(tmp_path: Path, index: bool) -> None:
    paths = written(tmp_path, [bytes(busy(1).data)] * 3, index=index)
    paths[1].unlink()
    with pytest.raises(GapError, match="missing") as raised:
        read(tmp_path)
    assert raised.value.where["file"] == "binlog.000002"


def test_a_file_that_is_purged_while_it_is_waited_for_is_a_gap(tmp_path: Path) -> None:
    paths = written(tmp_path, [bytes(busy(1).data)])
    with open_log(str(tmp_path)) as log:
        assert list(log)
        written(tmp_path, [bytes(busy(1).data)] * 2, first=2)
        paths[0].unlink()
        with pytest.raises(GapError, match="position is missing"):
            list(log)


def cut(log: LogBuilder, bytes_off: int) -> bytes:
    return bytes(log.data[:-bytes_off])


@pytest.mark.parametrize("off", [1, 20, 40, 100])
def test_the_tail_of_a_file_in_use_is_not_there_yet(tmp_path: Path, off: int) -> None:
    log = busy(2, in_use=True)
    start = [at for at, _, kind in log.events if kind == 33][-1]
    (path,) = written(tmp_path, [cut(log, off)])
    with open_log(str(path)) as opened:
        given = list(opened)
        assert opened.position() == Position("binlog", 1, start)
        assert {event.header.position for event in given} == {at for at, _, _ in log.events if at < start}
        path.write_bytes(log.data)
        more = [opened.wait_for_next_event(1) for at, _, _ in log.events if at >= start]
        assert [event.header.position for event in more if event] == [at for at, _, _ in log.events if at >= start]
        assert opened.wait_for_next_event(0) is None
        assert opened.position() == Position("binlog", 1, log.end)


@pytest.mark.parametrize(("off", "what"), [(1, "inside an event"), (31, "inside a transaction")])
def test_the_same_tail_of_a_closed_file_is_damage(tmp_path: Path, off: int, what: str) -> None:
    closed, live = busy(2), busy(2, in_use=True)
    (path,) = written(tmp_path / "closed", [cut(closed, off)])
    with pytest.raises(BinlogFormatError, match=what):
        read(path)
    (path,) = written(tmp_path / "live", [cut(live, off)])
    with pytest.raises(BinlogFormatError, match=what):
        read(path, live=False)
    assert read(path)
    # A file that others follow is closed, whatever its flag says.
    written(tmp_path / "crashed", [cut(live, off), bytes(busy(1, first=9).data)])
    with pytest.raises(BinlogFormatError, match=what) as raised:
        read(tmp_path / "crashed")
    assert raised.value.where["file"] == "binlog.000001"


def test_waiting_over_the_end_of_a_file(tmp_path: Path) -> None:
    first = busy(1, in_use=True)
    (path,) = written(tmp_path, [bytes(first.data)])
    whole = busy(1, in_use=True)
    whole.rotate()

    def write() -> None:
        time.sleep(0.2)
        path.write_bytes(whole.data)
        time.sleep(0.2)
        written(tmp_path, [bytes(busy(1, first=2).data)], first=2)

    writer = threading.Thread(target=write)
    with open_log(str(tmp_path), poll_seconds=0.05) as log:
        before = list(log)
        writer.start()
        found = [log.wait_for_next_event(10) for _ in range(3)]
        writer.join()
    assert names([event for event in found if event]) == ["Rotate", "FormatDescription", "Gtid"]
    assert len(before) == len(first.events)


def test_waiting_for_a_time(tmp_path: Path) -> None:
    log = LogBuilder(in_use=True)
    (path,) = written(tmp_path, [bytes(log.data)])
    later = datetime(2100, 1, 1, tzinfo=UTC)
    for number, micros in ((1, 4_000_000_000_000_000), (2, 4_102_444_800_000_000), (3, 4_200_000_000_000_000)):
        log.begin(number, micros=micros)
        log.xid()
    timer = threading.Timer(0.2, lambda: path.write_bytes(log.data))
    timer.start()
    with open_log(str(path), start=later, wait=True, poll_seconds=0.05) as opened:
        assert opened.position().logpos == log.events[4][0]
    timer.join()
    path.write_bytes(bytes(log.data[: log.events[4][0]]))
    timer = threading.Timer(0.2, lambda: path.write_bytes(log.data))
    timer.start()
    with open_log(str(path), stop=later, wait=True, poll_seconds=0.05) as opened:
        found = list(iter(lambda: opened.wait_for_next_event(10), None))
    timer.join()
    assert names(found) == ["FormatDescription", "Gtid", "Query", "Xid"]


def test_positions_inside_a_transaction_are_its_start(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(2).data)])
    with open_log(str(path)) as log:
        events = iter(log)
        for event in events:
            end = event.header.position + event.header.size
            inside = event.transaction and end < event.transaction.end.logpos
            assert log.position().logpos == (event.transaction.start.logpos if inside and event.transaction else end)
            if isinstance(event, WriteRowsEvent):
                break
        again = log.set_position(log.position())
        rest = list(log)
    assert rest[0].header.position == again.logpos
    assert sum(isinstance(event, XidEvent) for event in rest) == 2


class Statements(ContentHandler):
    """Keeps statements, and drops what commits."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def process_query(self, event: QueryEvent) -> Event:
        self.seen.append(event.statement)
        return event

    def process_xid(self, event: XidEvent) -> None:
        self.seen.append(str(event.xid))


def test_handlers_see_change_and_drop_events_in_their_order(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(3).data)])
    statements = Statements()

    def only_rows(event: Event) -> Event | None:
        assert not isinstance(event, XidEvent)
        return event if isinstance(event, WriteRowsEvent) else None

    with open_log(str(path), handlers=[statements, only_rows]) as log:
        found = list(log)
        assert names(found) == ["WriteRows"] * 3
        assert statements.seen == ["BEGIN", "7", "BEGIN", "7", "BEGIN", "7", "ALTER TABLE t ADD c3 INT"]
        log.inject(found[0])
        log.inject(read(path)[0])
        assert list(log) == [found[0]]
        log.handlers.clear()
        log.inject(read(path)[0])
        assert names(list(log)) == ["FormatDescription"]
