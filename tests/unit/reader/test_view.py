"""The event view shows what is staged, event by event, whatever the blocks it is read in."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from loader.errors import BinlogFormatError
from loader.model.gtid import MysqlGtid
from loader.reader.events import (
    DeleteRowsEvent,
    EventHeader,
    FormatDescriptionEvent,
    GtidEvent,
    QueryEvent,
    RotateEvent,
    RowsEvent,
    TransactionPayloadEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
    XidEvent,
)
from loader.reader.log import open_log
from tests.unit.binlog.builder import MICROS, SECONDS, LogBuilder
from tests.unit.binlog.events.test_compressed_events import inner, payload, zipped
from tests.unit.binlog.fields import Table, decimal, integer
from tests.unit.binlog.reading import UNIT, staged
from tests.unit.reader.logs import LINES, ORDERS, UUID, blocks_of, busy, names, read, staged_by_table, written


@pytest.mark.parametrize("block", [200, 1000, 1 << 20])
@pytest.mark.parametrize("checksum", [True, False])
def test_the_text_of_the_view_is_the_staged_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, checksum: bool
) -> None:
    log = bytes(busy(12, checksum=checksum).data)
    blocks_of(block, monkeypatch)
    (path,) = written(tmp_path, [log])
    expected = staged(log, every_update=True)
    assert staged_by_table(read(path)) == {str(schema.name): text for schema, text in expected.text.items()}


@pytest.mark.parametrize("block", [300, 1 << 20])
def test_so_is_that_of_compressed_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    log = LogBuilder()
    for number in range(1, 5):
        log.gtid(number)
        log.event(40, payload(bytes(inner([(n, "text " * 40) for n in range(number)]).data)))
    blocks_of(block, monkeypatch)
    (path,) = written(tmp_path, [bytes(log.data)])
    events = read(path)
    expected = staged(bytes(log.data), every_update=True)
    assert staged_by_table(events) == {str(schema.name): text for schema, text in expected.text.items()}
    (at, size, _) = log.events[2]
    mine = [event for event in events if event.header.position == at]
    assert names(mine) == ["TransactionPayload", "Query", "TableMap", "WriteRows", "TableMap", "WriteRows", "Xid"]
    assert isinstance(mine[0], TransactionPayloadEvent)
    assert (mine[0].compression, mine[0].header.size, mine[0].header.inner) == (0, size, -1)
    assert [event.header.inner for event in mine[1:3]] == [0, mine[1].header.size]
    assert {event.transaction.end.logpos for event in mine if event.transaction} == {at + size}


def test_a_compressed_event_of_mariadb_is_shown_plain(tmp_path: Path) -> None:
    log = LogBuilder(server="10.11.6-MariaDB")
    log.mariadb_gtid(7)
    log.table_map(ORDERS)
    head = (100).to_bytes(6, "little") + b"\1\0" + b"\2\xff"
    log.event(166, head + zipped(ORDERS.image((1, "one"))))
    log.xid()
    (path,) = written(tmp_path, [bytes(log.data)])
    gtid, table, rows, _ = read(path)[1:]
    assert names([gtid, table, rows]) == ["MariadbGtid", "TableMap", "WriteRows"]
    assert rows.header.name == "WRITE_ROWS_COMPRESSED_V1"
    assert isinstance(rows, RowsEvent)
    assert [change.after.as_dict() for change in rows if change.after] == [{"id": 1, "name": "one"}]
    assert staged_by_table([rows]) == {"shop.orders": next(iter(staged(bytes(log.data)).text.values()))}


def test_events_of_a_log_with_their_headers_and_transactions(tmp_path: Path) -> None:
    log = busy(1)
    log.gtid(2)
    ddl = log.query("DROP TABLE x", "shop")
    log.rotate("binlog.000002")
    (path,) = written(tmp_path, [bytes(log.data)])
    events = read(path)
    assert names(events) == [
        "FormatDescription", "Gtid", "Query", "TableMap", "WriteRows", "UpdateRows", "TableMap", "DeleteRows", "Xid",
        "Gtid", "Query", "Rotate",
    ]  # fmt: skip
    found = [(event.header.position, event.header.size, event.header.type) for event in events]
    assert found == log.events
    at, size, kind = log.events[1]
    assert events[1].header == EventHeader("binlog.000001", at, SECONDS, kind, 1, size, at + size, 0)
    form, gtid, rotate = events[0], events[1], events[-1]
    assert isinstance(form, FormatDescriptionEvent)
    assert (form.server_version, form.binlog_version, form.checksum, form.in_use) == ("8.4.0", 4, True, False)
    assert isinstance(gtid, GtidEvent)
    assert (gtid.gtid, gtid.last_committed, gtid.sequence_number) == (MysqlGtid(UUID, 1), 0, 1)
    assert (gtid.immediate_commit, gtid.original_commit) == (MICROS, MICROS)
    assert isinstance(rotate, RotateEvent)
    assert (rotate.next_file, rotate.next_position, rotate.transaction) == ("binlog.000002", 4, None)
    first = events[1].transaction
    assert first
    assert {event.transaction for event in events[1:9]} == {first}
    end = log.events[9][0]
    assert (first.seqno, str(first.start), str(first.end)) == (
        UNIT + end, f"binlog.000001:{log.events[1][0]}", f"binlog.000001:{end}",
    )  # fmt: skip
    assert (first.committed, first.rolled_back, str(first.gtid)) == (MICROS, False, f"{UUID}:1")
    statement = events[-2]
    assert isinstance(statement, QueryEvent)
    assert (statement.schema, statement.statement, statement.header.position) == ("shop", "DROP TABLE x", ddl)
    assert isinstance(events[8], XidEvent)
    assert events[8].xid == 7


def test_rows_have_before_and_after_images_by_name(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(1).data)])
    inserts, updates, deletes = (event for event in read(path) if isinstance(event, RowsEvent))
    assert isinstance(inserts, WriteRowsEvent)
    assert isinstance(updates, UpdateRowsEvent)
    assert isinstance(deletes, DeleteRowsEvent)
    assert [(c.op, c.before, c.after and c.after.as_dict()) for c in inserts.rows] == [
        ("I", None, {"id": 10, "name": 'item "0"\n\\'}),
        ("I", None, {"id": 11, "name": 'item "1"\n\\'}),
    ]
    assert [(c.op, c.before and c.before.as_dict(), c.after and c.after.as_dict()) for c in updates.rows] == [
        ("U", {"id": 1, "name": "a"}, {"id": 1, "name": "b"}),
        ("U", {"id": 1, "name": "b"}, {"id": -1, "name": None}),
    ]
    assert [(c.op, c.before and c.before.as_dict(), c.after) for c in deletes.rows] == [
        ("D", {"id": 1, "line": 1}, None), ("D", {"id": 1, "line": 2}, None),
    ]  # fmt: skip
    row = updates.rows[1].after
    assert row
    assert row["name"].is_null
    assert row["id"].as_decimal() == Decimal(-1)
    assert len(row) == 2
    with pytest.raises(KeyError):
        row["nothing"]


def test_tables_that_are_not_asked_for_are_named_and_not_decoded(tmp_path: Path) -> None:
    odd = Table("shop", "odd", (integer("id"), decimal()))
    log = LogBuilder().insert(ORDERS, (1, "one"))
    log.begin(2)
    log.event(19, odd.body(100, optional=b""))  # without the names of its columns
    log.write(odd, (1, Decimal(2)))
    log.xid()
    (path,) = written(tmp_path, [bytes(log.data)])
    events = [event for event in read(path, tables=("*.orders",)) if isinstance(event, RowsEvent)]
    assert [(str(event.table), len(event.rows), event.schema is None) for event in events] == [
        ("shop.orders", 1, False), ("shop.odd", 0, True),
    ]  # fmt: skip
    (row,) = [
        event.rows[0].after for event in read(path, tables=("*.odd",)) if isinstance(event, RowsEvent) and event.rows
    ]
    assert row
    assert row["@2"].as_decimal() == Decimal(2)


def test_what_stands_before_damage_is_given_before_it_is_raised(tmp_path: Path) -> None:
    log = busy(3)
    data = bytearray(log.data)
    broken = next(at for at, _, kind in reversed(log.events) if kind == 32)
    data[broken + 30] ^= 1
    (path,) = written(tmp_path, [bytes(data)])
    given = []
    with open_log(f"file://{path}") as opened:
        with pytest.raises(BinlogFormatError, match="checksum") as raised:
            for event in opened:
                given.append(event)  # noqa: PERF402 - what was given before the error counts
        assert raised.value.where["position"] == str(broken)
        last = given[-1].transaction
        assert last
        assert str(last.gtid) == f"{UUID}:2"
        assert opened.position() == last.end


def test_an_event_of_no_table_ends_a_statement_and_has_no_rows(tmp_path: Path) -> None:
    log = LogBuilder().begin()
    log.table_map(LINES)
    log.write(LINES, (1, 1), last=False)
    log.rows(30, LINES, [], table_id=0xFFFFFF)
    log.xid()
    (path,) = written(tmp_path, [bytes(log.data)])
    assert [len(event.rows) for event in read(path) if isinstance(event, RowsEvent)] == [1, 0]
