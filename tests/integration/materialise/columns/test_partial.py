"""Row images that leave columns out, of a table that is altered in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loader.materialise.merge import table_merge
from loader.model.table import Column, TableSchema
from loader.staging.documents import Barrier
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, number, position, table

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
SIZE, WIDE, DAY = Column("size", "int"), Column("size", "bigint"), Column("day", "datetime", size=1)
BEFORE = table("orders", [ID, NAME, SIZE], ["id"])
AFTER = table("orders", [DAY, ID, WIDE, NAME], ["id"])
P0 = position(1, 1000)
ALTER = "ALTER TABLE orders ADD day DATETIME(1) DEFAULT '2024-01-02 03:04:05.5' FIRST, MODIFY size BIGINT AFTER id"


def test_columns_that_come_between_records(lake: Lake) -> None:
    rows = [(key, f"{key}\\\n", key * 10) for key in range(1, 6)]
    lake.one(lake.loaded(lake.staging.load(BEFORE, rows, P0)))
    early = [
        Change("U", number(1, 1100), 1, (1, None, 11), "02"),
        Change("U", number(1, 1100), 2, (2, "two", None), "04"),
        Change("D", number(1, 1100), 3, (3, None, None), "06"),
        Change("I", number(1, 1100), 4, (6, None, None), "0e"),
        Change("D", number(1, 1100), 5, (4, None, None), "06"),
    ]
    late = [
        Change("U", number(1, 1300), 1, (None, 2, 22, None), "09"),
        Change("D", number(1, 1300), 2, (None, 6, None, None), "0d"),
        Change("I", number(1, 1300), 3, (None, 7, None, "seven"), "15"),
        Change("U", number(1, 1300), 4, ("2025-01-01 00:00:00.0", 5, None, None), "0c"),
    ]
    barrier = Barrier(
        seqno=number(1, 1200), position=position(1, 1200), statement=ALTER, tables=("shop.orders",),
        database="shop", sql_mode=1 << 21, mariadb=False,
    )  # fmt: skip
    lake.staging.interval(P0, position(1, 2000), [(BEFORE, early), (AFTER, late)], barriers=[barrier])
    lake.one(lake.merged())
    default = "2024-01-02 03:04:05.500000"
    assert sorted((str(day), *rest) for day, *rest in lake.rows(AFTER).values()) == [
        (default, 1, 11, "1\\\n"),
        (default, 2, 22, "two"),
        (default, 7, 30, "seven"),
        ("2025-01-01 00:00:00", 5, 50, "5\\\n"),
    ]
    assert lake.one(lake.merged()).status == "already"


def test_files_are_verified_again_when_they_are_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that images leave out are read after the earlier parts of the merge, which can take long."""
    lake.one(lake.loaded(lake.staging.load(BEFORE, [(1, "one", 10)], P0)))
    interval = lake.staging.interval(
        P0, position(1, 2000), [(BEFORE, [Change("U", number(1, 1100), 1, (1, None, 11), "02")])]
    )
    (file,) = interval.files
    path = Path(lake.staging.store.root.removeprefix("file://")) / file.key
    complete, whole = table_merge.complete_changes, path.read_bytes()

    def after_damage(*given: Any) -> Any:
        path.write_bytes(whole.replace(b"11", b"12"))
        return complete(*given)

    monkeypatch.setattr(table_merge, "complete_changes", after_damage)
    (found,) = lake.merged().tables
    assert found.error is not None
    assert found.error["error"] == "StagedDataError"
    assert lake.rows(BEFORE) == {(1,): (1, "one", 10)}


@pytest.mark.parametrize(
    "last",
    [
        # The order by the key of the failed merge names a column that goes.
        pytest.param(table("orders", [ID, NAME], ["id"]), marks=pytest.mark.sweep),
        table("orders", [ID, Column("name", "date")], ["id"]),  # the failed merge made a column for another `name`
    ],
)
def test_a_load_after_a_merge_that_failed_with_other_columns(lake: Lake, last: TableSchema) -> None:
    first = table("orders", [ID, SIZE], ["id"])
    failing = table("orders", [Column("id", "varchar", charset="utf8mb4"), NAME], ["id"])
    lake.one(lake.loaded(lake.staging.load(first, [(1, 10)], P0)))
    statements = ("DROP TABLE orders", "CREATE TABLE orders (id VARCHAR(9) PRIMARY KEY, name TEXT)")
    barriers = [
        Barrier(
            seqno=number(1, at), position=position(1, at), statement=statement, tables=("shop.orders",),
            database="shop", sql_mode=1 << 21, mariadb=False,
        )
        for at, statement in zip((1100, 1200), statements, strict=True)
    ]  # fmt: skip
    partial = Change("I", number(1, 1300), 1, ("one", None), "02")
    lake.staging.interval(P0, position(1, 2000), [(failing, [partial])], barriers=barriers)
    assert lake.one(lake.merged()).status == "quarantined"
    lake.one(lake.loaded(lake.staging.load(last, [(2, None)], position(1, 2000))))
    assert lake.rows(last) == {(2,): (2, None)}
    assert lake.metadata(last).write_order == ("id",)
