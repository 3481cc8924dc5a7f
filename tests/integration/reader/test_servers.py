"""The library on real servers: their files, their option file and the network give the same events; places; waiting."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from loader.errors import UsageError
from loader.model.position import Position
from loader.reader.events import DeleteRowsEvent, Event, QueryEvent, RowsEvent, UpdateRowsEvent, WriteRowsEvent
from loader.reader.log import BinaryLog, open_log
from loader.reader.values import PartialDate
from tests.integration.binlog.source import Source

pytestmark = pytest.mark.integration


def network(source: Source) -> str:
    return f"mysql://{source.address.user}@{source.address.host}:{source.address.port}/"


def events(source: Source, uri: str, start: Position, **how: Any) -> list[Event]:
    with open_log(uri, start=start, tables=(f"{source.schema}.*",), **how) as log:
        return list(log)


def work(source: Source) -> Position:
    """Transactions of several kinds; where they begin."""
    source.run("DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40))")
    start = source.mark()
    for n in range(5):
        source.run("BEGIN", f"INSERT INTO t VALUES ({n}, 'one'), ({n + 100}, NULL)")
        source.run(f"UPDATE t SET v = 'two' WHERE id = {n}", f"DELETE FROM t WHERE id = {n + 100}", "COMMIT")
    source.run("ALTER TABLE t COMMENT 'changed'")
    return start


def test_files_option_file_and_network_give_the_same_events(source: Source, tmp_path: Path) -> None:
    start = work(source)
    source.run("FLUSH BINARY LOGS")
    work(source)
    stop = source.mark()
    folder = source.server.log_dir
    (tmp_path / "my.cnf").write_text(f"[mysqld]\ndatadir={folder}\nlog_bin={folder}/{stop.basename}\n")
    uris = [f"file://{folder}", f"file://{tmp_path}/my.cnf", network(source)]
    found = [events(source, uri, start, stop=stop) for uri in uris]
    assert found[1] == found[0]
    shown = [event for event in found[0] if type(event).__name__ not in {"FormatDescriptionEvent"}]
    # A dump's format event has no flag that the file is in use.
    assert [event for event in found[2] if type(event).__name__ not in {"FormatDescriptionEvent"}] == shown
    kinds = [type(event) for event in shown if isinstance(event, RowsEvent) and event.schema]
    assert kinds == [WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent] * 10
    files = {event.header.file for event in shown}
    assert files == {start.file, stop.file}
    statements = [event.statement for event in shown if isinstance(event, QueryEvent)]
    assert statements.count("ALTER TABLE t COMMENT 'changed'") == 2


def test_every_event_accounts_for_its_bytes(source: Source) -> None:
    start = work(source)
    stop = source.mark()
    found = events(source, f"file://{source.server.log_dir}", start, stop=stop)
    assert sum(event.header.size for event in found) == stop.logpos - start.logpos
    assert [e.header.position for e in found] == sorted(e.header.position for e in found)
    assert all(event.transaction for event in found)
    assert {event.transaction.seqno for event in found if event.transaction} == {
        event.transaction.end.seqno() for event in found if event.transaction
    }


def test_values_come_as_the_server_has_them(source: Source) -> None:
    source.run(
        "DROP TABLE IF EXISTS v",
        "CREATE TABLE v (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(20,4), f DOUBLE, at DATETIME(3), ts TIMESTAMP(6) NULL,"
        " t TIME(2), day DATE, y YEAR, b VARBINARY(9), e ENUM('a','b'), s SET('x','y'), v TEXT)",
    )
    start = source.mark()
    source.run(
        "INSERT INTO v VALUES (18446744073709551615, -12.5, 0.1, '2026-01-31 12:00:00.125', '2026-01-31 12:00:00.000001',"
        " '-101:02:03.5', '0000-00-00', 2026, X'00FF', 'b', 'x,y', 'é\\n\"'),"
        " (1, NULL, NULL, '2026-00-00 00:00:00', NULL, NULL, NULL, 0, '', 'a', '', '')"
    )
    (rows,) = (event.rows for event in events(source, network(source), start) if isinstance(event, RowsEvent))
    first, second = (change.after.as_dict() for change in rows if change.after)
    assert first == {
        "id": 2**64 - 1, "d": Decimal("-12.5000"), "f": 0.1,
        "at": datetime(2026, 1, 31, 12, 0, 0, 125_000),
        "ts": datetime(2026, 1, 31, 12, 0, 0, 1, UTC),
        "t": -timedelta(hours=101, minutes=2, seconds=3, milliseconds=500), "day": PartialDate("0000-00-00"), "y": 2026,
        "b": b"\0\xff", "e": "b", "s": frozenset({"x", "y"}), "v": 'é\n"',
    }  # fmt: skip
    assert second == {
        "id": 1, "d": None, "f": None, "at": PartialDate("2026-00-00 00:00:00.000"), "ts": None, "t": None, "day": None,
        "y": 0, "b": b"", "e": "a", "s": frozenset(), "v": "",
    }  # fmt: skip


def test_columns_that_are_not_logged_are_absent(source: Source) -> None:
    source.run("DROP TABLE IF EXISTS m", "CREATE TABLE m (id INT PRIMARY KEY, v VARCHAR(9), w INT)")
    source.run("INSERT INTO m VALUES (1, 'one', NULL)", "SET SESSION binlog_row_image = 'MINIMAL'")
    start = source.mark()
    source.run("UPDATE m SET w = 7 WHERE id = 1", "DELETE FROM m", "SET SESSION binlog_row_image = 'FULL'")
    found = [event for event in events(source, network(source), start) if isinstance(event, RowsEvent)]
    (update,), (delete,) = (event.rows for event in found)
    assert update.before
    assert update.after
    assert delete.before
    assert (update.op, update.before.as_dict(), update.after.as_dict()) == ("U", {"id": 1}, {"id": 1, "w": 7})
    assert (delete.op, delete.before.as_dict()) == ("D", {"id": 1})
    assert [(value.is_absent, value.is_null) for value in delete.before] == [
        (False, False),
        (True, False),
        (True, False),
    ]


@pytest.mark.parametrize("over", ["files", "network"])
def test_places_by_gtid_time_and_position(source: Source, over: str) -> None:
    uri = network(source) if over == "network" else f"file://{source.server.log_dir}"
    source.run("DROP TABLE IF EXISTS p", "CREATE TABLE p (id INT PRIMARY KEY)")
    executed = "@@gtid_binlog_pos" if source.kind == "mariadb" else "@@gtid_executed"
    source.run("FLUSH BINARY LOGS", "INSERT INTO p VALUES (1)")
    ((gtids,),) = source.rows(f"SELECT {executed}")
    if not gtids:
        pytest.fail("the server of the tests writes GTIDs")
    time.sleep(1.1)
    middle = source.mark()
    ((now,),) = source.rows("SELECT UTC_TIMESTAMP(6)")
    source.run("INSERT INTO p VALUES (2)", "INSERT INTO p VALUES (3)")

    def ids(start: Any, **how: Any) -> list[int]:
        found = [event for event in events(source, uri, start, **how) if isinstance(event, WriteRowsEvent)]
        return [change.after["id"].as_int() or 0 for event in found for change in event if change.after]

    assert ids(str(gtids).replace("\n", "")) == [2, 3]
    assert ids(now.replace(microsecond=0)) == [2, 3]
    assert ids(middle) == [2, 3]
    assert ids(Position(middle.basename, middle.lognum, 4), stop=middle) == [1]
    with pytest.raises(UsageError, match="inside a transaction") as raised:
        ids(Position(middle.basename, middle.lognum, middle.logpos + 1))
    assert raised.value.where["before"] == str(middle.logpos)


@pytest.mark.parametrize("over", ["files", "network"])
def test_waiting_for_what_comes(source: Source, over: str) -> None:
    source.run("DROP TABLE IF EXISTS w", "CREATE TABLE w (id INT PRIMARY KEY)")
    uri = network(source) if over == "network" else f"file://{source.server.log_dir}"
    with open_log(uri, start="end", tables=(f"{source.schema}.w",), poll_seconds=0.1) as log:
        written = list(iter(lambda: log.wait_for_next_event(0.2), None))  # MariaDB's threads write checkpoints
        assert not [event for event in written if isinstance(event, WriteRowsEvent)]
        timer = threading.Timer(0.5, lambda: source.run("INSERT INTO w VALUES (1)", "FLUSH BINARY LOGS"))
        timer.start()
        assert _next_row(log) == 1
        timer.join()
        source.run("INSERT INTO w VALUES (2)")
        assert _next_row(log) == 2


def _next_row(log: BinaryLog) -> int | None:
    while event := log.wait_for_next_event(20):
        if isinstance(event, WriteRowsEvent) and event.schema:
            (change,) = event.rows
            return change.after["id"].as_int() if change.after else None
    return None
