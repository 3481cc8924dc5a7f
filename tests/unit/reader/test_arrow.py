"""Rows of a table in Arrow and pandas, and the short forms of rows and events."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from loader.errors import DataError, UsageError
from loader.reader.arrow import to_arrow, to_pandas
from loader.reader.log import open_log
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.fields import Table, blob, date, decimal, integer, set_of
from tests.unit.binlog.fields import datetime as moment
from tests.unit.reader.logs import ORDERS, busy, read, written

ODD = Table(
    "shop", "odd",
    (integer("id", 8, unsigned=True), decimal("d"), blob("b"), set_of("s", ["x", "y"]), date("day"), moment("at", 6)),
)  # fmt: skip


def test_changes_become_rows_of_a_table(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(2).data)])
    events = read(path)
    found = to_arrow(events, "shop.orders")
    assert found.schema.names == ["_op", "_seqno", "_row_offset", "_absent", "id", "name"]
    assert found.column("_op").to_pylist() == ["I", "I", "U", "U", "I", "I", "I", "U", "U"]
    assert found.column("id").to_pylist() == [10, 11, 1, -1, 20, 21, 22, 2, -2]
    assert found.column("name").to_pylist()[:4] == ['item "0"\n\\', 'item "1"\n\\', "b", None]
    assert found.schema.field("id").type == pa.int32()
    deleted = to_pandas(events, "shop.lines")
    assert deleted[["_op", "id", "line"]].to_numpy().tolist() == [["D", n, m] for n in (1, 2) for m in (1, 2)]
    assert len(set(zip(found["_seqno"].to_pylist(), found["_row_offset"].to_pylist(), strict=True))) == 9


def test_types_and_absent_columns(tmp_path: Path) -> None:
    log = LogBuilder().insert(
        ODD, (2**64 - 1, Decimal("-0.50"), b"\0\xff", 3, (2024, 2, 29), (2024, 2, 29, 1, 2, 3, 5))
    )
    log.begin(2)
    log.table_map(ODD)
    log.rows(30, ODD, [ODD.image((7, None), (0, 1))], present=b"\x03")
    log.xid()
    (path,) = written(tmp_path, [bytes(log.data)])
    first, second = to_arrow(read(path), "shop.odd").to_pylist()
    assert {name: value for name, value in first.items() if not name.startswith("_")} == {
        "id": 2**64 - 1, "d": Decimal("-0.50"), "b": b"\0\xff", "s": ["x", "y"], "day": datetime.date(2024, 2, 29),
        "at": datetime.datetime(2024, 2, 29, 1, 2, 3, 5),
    }  # fmt: skip
    assert (second["id"], second["d"], second["_absent"]) == (7, None, ["b", "s", "day", "at"])


def test_what_has_no_form_in_arrow_is_refused(tmp_path: Path) -> None:
    zero = LogBuilder().insert(ODD, (1, None, None, None, (0, 0, 0), None))
    changed = LogBuilder().insert(ORDERS, (1, "a")).insert(Table("shop", "orders", (integer("id"),)), (2,), number=2)
    for number, (log, table, says) in enumerate(
        [
            (zero, "shop.odd", "'0000-00-00' cannot be converted to Arrow"),
            (changed, "shop.orders", "the columns of the table change in the log"),
            (changed, "shop.none", "the log has no row of the table"),
        ]
    ):
        (path,) = written(tmp_path / str(number), [bytes(log.data)])
        with pytest.raises(DataError, match=says):
            to_arrow(read(path), table)


def test_rows_and_events_have_short_forms(tmp_path: Path) -> None:
    (path,) = written(tmp_path, [bytes(busy(1).data)])
    events = read(path)
    rows = next(event for event in events if type(event).__name__ == "UpdateRowsEvent")
    change = rows.rows[0]  # type: ignore[attr-defined]
    assert repr(change) == "RowChange(U, before=Row(id=1, name='a'), after=Row(id=1, name='b'))"
    assert repr(change.after["name"]) == "Value(name='b')"
    assert (change.after.columns, change.after.as_dict()) == (("id", "name"), {"id": 1, "name": "b"})
    assert repr(rows).startswith(f"UpdateRowsEvent(binlog.000001:{rows.header.position}, table='shop.orders', ")
    assert all(len(repr(event)) < 300 for event in events)
    assert repr(events[-1]).endswith(", xid=7)")


@pytest.mark.parametrize("uri", [None, "", 5])
def test_what_is_no_address_is_refused(uri: object) -> None:
    with pytest.raises(UsageError, match="is not an address of a log"):
        open_log(uri)  # type: ignore[arg-type]
