"""Unsupported events are refused by name and position, before anything is applied."""

from __future__ import annotations

import pytest

from loader.errors import BinlogFormatError, UnsupportedError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Field, Table, integer, varchar
from tests.unit.binlog.reading import staged, walked

TABLE = Table("shop", "orders", (integer("id"), varchar("name")))
IGNORABLE = 0x80
REFUSED = {
    1: "START_V3", 6: "LOAD", 8: "CREATE_FILE", 10: "EXEC_LOAD", 20: "PRE_GA_WRITE_ROWS", 26: "INCIDENT",
}  # fmt: skip
SKIPPED = [3, 4, 5, 9, 11, 13, 14, 17, 27, 28, 29, 35, 36, 37, 41, 160, 161, 163, 164]


@pytest.mark.parametrize("flags", [0, IGNORABLE])
@pytest.mark.parametrize("kind", list(REFUSED))
def test_an_event_that_is_not_covered_is_refused_by_name(kind: int, flags: int) -> None:
    log = LogBuilder().begin()
    at = log.event(kind, bytes(40), flags=flags)
    with pytest.raises(UnsupportedError, match=f"the log contains {REFUSED[kind]}, which") as caught:
        walked(bytes(log.data))
    assert caught.value.where == {"file": "binlog.000001", "position": str(at)}
    assert caught.value.exit_code == 4
    assert not caught.value.retryable


@pytest.mark.parametrize("kind", [43, 100, 159, 173, 255])
def test_an_unknown_event_is_refused_unless_the_server_calls_it_ignorable(kind: int) -> None:
    log = LogBuilder()
    log.event(kind, bytes(20), flags=IGNORABLE)
    log.insert(TABLE, (1, "x"))
    assert [line[5] for line in staged(bytes(log.data)).of("shop.orders")] == ["1"]
    log.event(kind, bytes(20))
    with pytest.raises(UnsupportedError, match=f"event type {kind}"):
        walked(bytes(log.data))


@pytest.mark.parametrize("kind", SKIPPED)
def test_events_that_change_no_row_are_passed_over_and_counted(kind: int) -> None:
    log = LogBuilder().begin()
    log.event(kind, bytes(10))
    log.table_map(TABLE)
    log.write(TABLE, (1, "x"))
    log.xid()
    result = staged(bytes(log.data))
    assert len(result.of("shop.orders")) == 1
    assert result.index.counts[kind] == 1


def test_minimal_metadata_is_refused_for_a_captured_table_only() -> None:
    log = LogBuilder().begin()
    at = log.table_map(TABLE, optional=b"\1\1\0")
    log.write(TABLE, (1, "x"))
    log.xid()
    with pytest.raises(UnsupportedError, match="the log has no column names") as caught:
        walked(bytes(log.data))
    assert caught.value.where == {"file": "binlog.000001", "position": str(at), "table": "shop.orders"}
    assert "binlog_row_metadata=FULL" in caught.value.hint
    assert len(walked(bytes(log.data), captured=lambda _: False).rows) == 1


def test_a_column_type_that_nobody_knows_is_refused() -> None:
    table = Table("shop", "odd", (Field("strange", 99, b"", lambda value: value),))
    log = LogBuilder().begin()
    log.table_map(table)
    with pytest.raises(UnsupportedError, match="column type 99") as caught:
        walked(bytes(log.data))
    assert caught.value.where["table"] == "shop.odd"
    log.write(Table("shop", "odd", (integer("strange"),)), (1,))
    log.xid()
    assert len(walked(bytes(log.data), captured=lambda _: False).rows) == 1


def test_a_statement_about_xa_that_no_server_logs_is_refused() -> None:
    log = LogBuilder()
    log.gtid()
    log.query("XA RECOVER")
    with pytest.raises(UnsupportedError, match="an unknown XA statement"):
        walked(bytes(log.data))


@pytest.mark.parametrize("columns", [1, 3])
def test_a_row_event_of_another_column_count_is_damage(columns: int) -> None:
    log = LogBuilder().begin()
    log.table_map(TABLE)
    other = Table("shop", "orders", tuple(integer(f"c{i}") for i in range(columns)))
    log.write(other, list(range(columns)))
    log.xid()
    with pytest.raises(BinlogFormatError, match="does not fit its table map"):
        staged(bytes(log.data))
