"""The last transaction of a log in every state that a crash or a running write can leave it in, at every byte.

The states are those of WL#5493: whole; header cut; body cut; zeros where bytes were to be; bytes of something else. A
log that still grows gives what is whole and waits for the rest; of a closed one a cut is damage. Zeros and other bytes
are never waited for: they are damage, named by the place of their event, and nothing of their transaction is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loader.errors import BinlogFormatError, GapError, LoaderError
from loader.model.position import Position
from loader.reader.events import Event
from loader.reader.log import open_log
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.reading import Staged, outcome
from tests.unit.reader.logs import busy, read, written

LIVE = busy(2, in_use=True)
CLOSED = busy(2)
LAST = [at for at, _, kind in LIVE.events if kind == 33][-1]
PLACES = range(LAST, LIVE.end)


def zeros(log: LogBuilder, at: int) -> bytes:
    """The log with zeros from there on."""
    return bytes(log.data[:at]) + bytes(log.end - at)


def garbage(log: LogBuilder, at: int) -> bytes:
    """The log with other bytes from there on."""
    return bytes(log.data[:at]) + bytes(byte ^ 0x5A for byte in log.data[at:])


def given(path: Path) -> tuple[list[Event], Position, LoaderError | None]:
    """The events that a log gives, where it stands then, and the error that ends them."""
    found: list[Event] = []
    with open_log(str(path)) as log:
        try:
            found.extend(log)
        except LoaderError as error:
            return found, log.position(), error
        return found, log.position(), None


def length_is_damaged(at: int) -> bool:
    """Whether damage from that byte on reaches the length in an event's header."""
    return any(place <= at < place + 13 for place, _, _ in LIVE.events)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("torn")


@pytest.mark.parametrize("at", PLACES)
def test_a_growing_file_gives_what_is_whole_and_then_the_rest(folder: Path, at: int) -> None:
    (path,) = written(folder, [bytes(LIVE.data[:at])])
    with open_log(str(path)) as log:
        before = list(log)
        assert [event.header.position for event in before] == [place for place, _, _ in LIVE.events if place < LAST]
        assert log.position().logpos == LAST
        path.write_bytes(LIVE.data)
        after = list(log)
        assert [event.header.position for event in after] == [place for place, _, _ in LIVE.events if place >= LAST]
        assert log.position().logpos == LIVE.end


@pytest.mark.parametrize("at", PLACES)
def test_a_closed_file_that_is_cut_is_damaged(folder: Path, at: int) -> None:
    for logs in ([bytes(CLOSED.data[:at])], [bytes(LIVE.data[:at]), bytes(busy(1, first=9).data)]):
        paths = written(folder / f"{len(logs)}", logs)
        events, position, error = given(folder / f"{len(logs)}" if len(logs) > 1 else paths[0])
        if at == LAST:  # a crash between two transactions, without STOP
            assert error is None
            assert {event.header.position for event in events if event.header.file == paths[0].name} == {
                place for place, _, _ in LIVE.events if place < LAST
            }
            continue
        assert isinstance(error, BinlogFormatError)
        assert error.where["file"] == paths[0].name
        assert (position.lognum, position.logpos) == (1, LAST)
        assert {event.header.position for event in events} == {place for place, _, _ in LIVE.events if place < LAST}


@pytest.mark.parametrize("damaged", [zeros, garbage])
@pytest.mark.parametrize("log", [LIVE, CLOSED], ids=["live", "closed"])
def test_zeros_and_other_bytes_are_damage_wherever_they_begin(folder: Path, damaged: object, log: LogBuilder) -> None:
    for at in PLACES:
        data = damaged(log, at)  # type: ignore[operator]
        if data == log.data:
            continue
        (path,) = written(folder, [data])
        events, position, error = given(path)
        assert [event.header.position for event in events] == [place for place, _, _ in log.events if place < LAST], at
        assert position.logpos == LAST
        # A length that says more than is there cannot be told from an event that is not there yet.
        waits = error is None and log is LIVE and damaged is garbage and length_is_damaged(at)
        assert waits or isinstance(error, LoaderError), f"from byte {at} on"
        assert waits or (error and error.exit_code == 4), f"from byte {at} on: {error!r}"
        found = outcome(data)
        assert not isinstance(found, Staged), f"from byte {at} on, read as an interval"
    (path,) = written(folder, [log.data])
    assert len(read(path)) == len(log.events)


@pytest.mark.parametrize("size", [1, 18, 19, 20, 100, 5000])
def test_zeros_behind_the_last_transaction_are_damage(folder: Path, size: int) -> None:
    for log in (LIVE, CLOSED):
        (path,) = written(folder, [bytes(log.data) + bytes(size)])
        events, position, error = given(path)
        assert len(events) == len(log.events)
        assert position.logpos == log.end
        # Less than a header may be the begin of one while the file grows.
        assert isinstance(error, BinlogFormatError) or (log is LIVE and size < 19)
        assert not isinstance(outcome(bytes(log.data) + bytes(size)), Staged)


def test_a_crash_without_stop_is_no_end_of_the_log(folder: Path) -> None:
    logs = [bytes(LIVE.data), bytes(busy(1, first=9).data), bytes(busy(1, first=10).data)]
    paths = written(folder / "crash", logs)
    assert {event.header.file for event in read(folder / "crash")} == {path.name for path in paths}
    paths[1].unlink()
    with pytest.raises(GapError, match="missing") as caught:
        read(folder / "crash")
    assert caught.value.where["file"] == paths[1].name
