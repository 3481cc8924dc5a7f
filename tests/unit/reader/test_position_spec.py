"""Places in a log: what their texts mean, and that only boundaries are given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import GapError, UsageError
from loader.model.gtid import MariadbGtid, mariadb_set, mysql_set, parse_gtid_set
from loader.model.position import Position
from loader.reader.events import Event
from loader.reader.locations.uri import resolve
from loader.reader.log import open_log
from loader.reader.seek.position_spec import After, At, Begin, End, Since, parse_place, place_of
from loader.reader.seek.seek import Locator
from tests.unit.binlog.builder import MICROS, SECONDS, LogBuilder, resealed
from tests.unit.reader.logs import ORDERS, UUID, busy, read, written


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("begin", Begin()),
        ("end", End()),
        ("binlog.000054:123", At("binlog.000054", 0, 123)),
        ("odd name.bin:4", At("odd name.bin", 0, 4)),
        ("54:123", At("", 54, 123)),
        ("54/123", At("", 54, 123)),
        ("54000000000123", At("", 54, 123)),
        ("2026-01-31", Since(1_769_817_600_000_000)),
        ("2026-01-31T12:00:00.5Z", Since(1_769_860_800_500_000)),
        ("2026-01-31 13:00:00+01:00", Since(1_769_860_800_000_000)),
        (f"{UUID}:1-5", After(mysql_set([(UUID, 1, 5)]))),
        (f"{UUID}:tag:1-5", After(mysql_set([(f"{UUID}:tag", 1, 5)]))),
        ("0-1-100", After(mariadb_set([MariadbGtid(0, 1, 100)]))),
        ("gtid:2026-01-31", After(mariadb_set([MariadbGtid(2026, 1, 31)]))),
        ("time:20260131", Since(1_769_817_600_000_000)),
    ],
)
def test_what_a_text_means(text: str, place: object) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "54", "binlog.000054", "2026-13-01", "time:x", ":5", "binlog:x"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageError):
        parse_place(text)


@given(st.integers(1, 10**6), st.integers(0, 10**12 - 1))
def test_a_position_and_its_seqno_are_one_place(lognum: int, logpos: int) -> None:
    position = Position("binlog", lognum, logpos)
    found = place_of(position)
    assert isinstance(found, At)
    assert parse_place(str(position.seqno())) == found == parse_place(f"{lognum}:{logpos}")
    named = parse_place(str(position))
    assert named == At(position.file, 0, logpos)


@given(st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)), st.integers(-12, 12))
def test_a_time_is_the_same_in_every_zone(moment: datetime, hours: int) -> None:
    zoned = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=hours)))
    assert place_of(moment) == place_of(zoned) == parse_place(zoned.isoformat())


def boundaries(log: LogBuilder) -> tuple[set[int], list[tuple[int, int]]]:
    """Where a built log can be entered, and its transactions."""
    transactions, start, begun = [], None, False
    for at, size, kind in log.events:
        if kind == 33:
            start, begun = at, False
        elif start is not None and kind == 2 and not begun:
            begun = b"BEGIN" in log.data[at : at + size]
            if not begun:
                transactions.append((start, at + size))
        elif start is not None and kind == 16:
            transactions.append((start, at + size))
    edges = {at for at, _, _ in log.events} | {log.end}
    inside = {edge for edge in edges for first, last in transactions if first < edge < last}
    return edges - inside, transactions


def test_every_byte_is_a_boundary_or_is_refused_with_its_neighbours(tmp_path: Path) -> None:
    log = busy(4)
    log.stop()
    (path,) = written(tmp_path, [bytes(log.data)])
    allowed, transactions = boundaries(log)
    assert len(transactions) == 5
    locator = Locator(resolve(str(path)))
    for offset in range(log.end + 20):
        if offset in allowed:
            assert locator.find(At("", 1, offset)) == Position("binlog", 1, offset)
            continue
        with pytest.raises(UsageError, match=f"binlog.000001:{offset}") as raised:
            locator.find(At("binlog.000001", 0, offset))
        before, after = int(raised.value.where["before"]), int(raised.value.where["after"])
        if 4 <= offset <= log.end:
            neighbours = next((a, b) for a, b in pairwise(sorted(allowed)) if a < offset < b)
            assert (before, after) == neighbours
        else:
            assert (before, after) == (4, log.end)


def timed(*seconds: int, first: int = 1) -> LogBuilder:
    """A log of a transaction at each of these seconds after the builder's own."""
    log = LogBuilder()
    for number, second in enumerate(seconds, first):
        log.begin(number, micros=MICROS + second * 1_000_000)
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "x"))
        log.xid()
    return log


def gtids(events: list[Event]) -> list[str]:
    """The numbers of the transactions among the events."""
    found = [str(event.transaction.gtid) for event in events if event.transaction]
    return [text.rpartition(":")[2] for text in dict.fromkeys(found)]


def begun(log: LogBuilder, seconds: int) -> bytes:
    """The log as if its file was begun so many seconds after the builder's time."""
    data = bytearray(log.data)
    data[4:8] = (SECONDS + seconds).to_bytes(4, "little")
    return resealed(data, log.events[0])


def with_previous(log: LogBuilder, last: int) -> LogBuilder:
    """The log with a PREVIOUS_GTIDS event of numbers 1 to `last` behind its format."""
    body = (1 if last else 0).to_bytes(8, "little")
    if last:
        body += bytes(range(16)) + b"".join(number.to_bytes(8, "little") for number in (1, 1, last + 1))
    made = LogBuilder()
    made.event(35, body)
    made.data += log.data[log.events[1][0] :]
    return made


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three files of two transactions each, with the sets before them."""
    logs = [with_previous(timed(n, n + 10, first=2 * k + 1), 2 * k) for k, n in enumerate((0, 20, 40))]
    written(tmp_path / "logs", [begun(log, 20 * k) for k, log in enumerate(logs)])
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("after", "expected"),
    [("", "123456"), ("1", "23456"), ("1-2", "3456"), ("1-3", "456"), ("1-4", "56"), ("1-6", ""), ("1-2:4", "3456"),
     ("1:3-6", "23456"), ("1-60", "")],
)  # fmt: skip
def test_a_gtid_set_starts_at_the_first_transaction_outside_it(three: Path, after: str, expected: str) -> None:
    start = f"gtid:{UUID}:{after}" if after else "gtid:"
    assert gtids(read(three, start=start)) == list(expected)
    rest = "".join(n for n in "123456" if n not in expected or not expected)
    stopped = gtids(read(three, stop=start))
    assert stopped == list(rest if expected else "123456")


def test_a_set_that_lacks_what_is_gone_is_a_gap(three: Path) -> None:
    (three / "binlog.000001").unlink()
    assert gtids(read(three, start=f"{UUID}:1-2")) == list("3456")
    with pytest.raises(GapError, match="are missing") as raised:
        read(three, start=f"{UUID}:1")
    assert raised.value.why == f"the set lacks {UUID}:2"
    with pytest.raises(UsageError, match="other kind of server"):
        read(three, start="0-1-5")


def test_a_mariadb_set(tmp_path: Path) -> None:
    log = LogBuilder(server="10.11.6-MariaDB")
    log.event(163, (0).to_bytes(4, "little"))
    for number in (5, 6, 7):
        log.mariadb_gtid(number)
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "x"))
        log.xid()
    (path,) = written(tmp_path, [bytes(log.data)])
    for start, expected in (("0-1-5", ["6", "7"]), ("0-1-7", [])):
        found = [str(event.transaction.gtid) for event in read(path, start=start) if event.transaction]
        assert list(dict.fromkeys(found)) == [f"0-1-{number}" for number in expected]
    for start in ("0-1-4", "0-9-6", "0-1-5,1-1-7"):  # the log has none of these, and may begin later
        with pytest.raises(GapError, match="are in log files that are missing"):
            list(read(path, start=start))


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(MICROS / 1_000_000 + seconds, UTC)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-9, "123456"), (0, "123456"), (1, "23456"), (10, "23456"), (25, "456"), (51, "")]
)
def test_a_time_starts_at_the_first_transaction_at_it_or_after(three: Path, seconds: int, expected: str) -> None:
    assert gtids(read(three, start=moment(seconds))) == list(expected)
    assert gtids(read(three, stop=moment(seconds))) == [n for n in "123456" if n not in expected]


def test_files_begun_before_a_time_are_passed_over(tmp_path: Path) -> None:
    early, late = timed(0), timed(100, first=2)
    broken = bytearray(early.data)
    broken[-1] ^= 1  # would be found if the file were looked into
    written(tmp_path, [bytes(broken), begun(late, 90)])
    found = Locator(resolve(str(tmp_path))).find(place_of(moment(95)))
    assert found == Position("binlog", 2, late.events[1][0])


def test_a_time_in_the_future_is_refused(three: Path) -> None:
    with pytest.raises(UsageError, match="not reached that time"):
        read(three, start=datetime(2200, 1, 1, tzinfo=UTC))


def test_the_end_of_the_log_now(three: Path) -> None:
    size = (three / "binlog.000003").stat().st_size
    with open_log(str(three), start="end") as log:
        assert log.position() == Position("binlog", 3, size)
        assert list(log) == []
    with pytest.raises(UsageError, match="does not have a file with number 4"):
        read(three, start="4:4")
    with pytest.raises(UsageError, match=r"does not have binlog\.000009"):
        read(three, start="binlog.000009:4")


def test_from_one_position_to_another_over_files(three: Path) -> None:
    starts = {str(e.transaction.gtid).rpartition(":")[2]: e.transaction.start for e in read(three) if e.transaction}
    assert gtids(read(three, start=starts["2"], stop=starts["6"])) == list("2345")
    assert gtids(read(three, start=str(starts["3"].seqno()), stop="3:4")) == list("34")
    assert parse_gtid_set(f"{UUID}:1-6") == mysql_set([(UUID, 1, 6)])
