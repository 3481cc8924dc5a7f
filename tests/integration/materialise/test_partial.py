"""Row images that leave columns out, of a table that is altered in between, or loaded while its keys change."""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from loader.model.table import Column, TableSchema
from loader.staging.documents import Barrier
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.random_logs import Server, between, plain
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


def moved(at: int, old: int, new: int, offset: int = 1) -> list[Change]:
    """An update of a key alone, as MINIMAL images hold it: both records leave the other columns out."""
    return [
        Change("D", number(1, at), offset, (old, None, None), "06"),
        Change("I", number(1, at), offset + 1, (new, None, None), "0e"),
    ]


NEW_ROW = [Change("I", number(1, 1200), 1, (1, "new", 10))]
LATER = [Change("U", number(1, 1300), 1, (2, None, 22), "02")]


MOVES = {  # what the load read, the changes meanwhile, and the rows in the end
    "read_after": ([(2, "row", 20)], moved(1100, 1, 2), [(2, "row", 20)]),
    "changed_since": ([(2, "row", 20)], [*moved(1100, 1, 2), *LATER], [(2, "row", 22)]),
    "read_before": ([(1, "row", 20)], [*moved(1100, 1, 2), *LATER], [(2, "row", 22)]),
    "read_twice": ([(1, "row", 20), (2, "row", 20)], moved(1100, 1, 2), [(2, "row", 20)]),
    "other_row": (
        [(1, "new", 10), (2, "row", 20)],
        [*moved(1100, 1, 2), *NEW_ROW],
        [(1, "new", 10), (2, "row", 20)],
    ),
    "moved_twice": ([(3, "row", 20)], [*moved(1100, 1, 2), *moved(1200, 2, 3)], [(3, "row", 20)]),
    "gone": ([], [*moved(1100, 1, 2), Change("D", number(1, 1200), 1, (2, None, None), "06")], []),
}


def test_keys_that_changed_while_the_load_read(lake: Lake) -> None:
    schemas = {name: table(name, [ID, NAME, SIZE], ["id"]) for name in MOVES}
    exact = position(1, 1500)
    keys = [lake.staging.load(schemas[name], read, P0, exact=exact) for name, (read, _, _) in MOVES.items()]
    assert {one.status for one in lake.loaded(*keys).tables} == {"applied"}
    lake.staging.interval(P0, position(1, 2000), [(schemas[name], log) for name, (_, log, _) in MOVES.items()])
    assert {one.status for one in lake.merged().tables} == {"applied"}
    found = {name: sorted(lake.rows(schemas[name]).values()) for name in MOVES}
    assert found == {name: rows for name, (_, _, rows) in MOVES.items()}
    assert {one.status for one in lake.merged().tables} == {"already"}


def test_rows_that_cannot_be_told_apart_stop_the_table(lake: Lake) -> None:
    """Two rows swapped their keys while the load read, so it is unknown which row a key of the load is of."""
    swapped = [*moved(1100, 1, 9), *moved(1100, 2, 1, offset=3), *moved(1100, 9, 2, offset=5)]
    read = [(1, "was two", 2), (2, "was one", 1)]
    lake.one(lake.loaded(lake.staging.load(BEFORE, read, P0, exact=position(1, 1500))))
    lake.staging.interval(P0, position(1, 2000), [(BEFORE, swapped)])
    stopped = lake.one(lake.merged())
    assert stopped.status == "quarantined" and stopped.error
    assert stopped.error["what"] == "a change leaves columns out, and its row does not exist"
    assert sorted(lake.rows(BEFORE).values()) == read


def test_a_change_of_a_key_waits_for_the_log_up_to_the_end_of_the_load(lake: Lake) -> None:
    """Until then it is not known whether the row of the old key is another one, which came later."""
    read = [(1, "new", 10), (2, "row", 20)]
    lake.one(lake.loaded(lake.staging.load(BEFORE, read, P0, exact=position(1, 1500))))
    lake.staging.interval(P0, position(1, 1150), [(BEFORE, moved(1100, 1, 2))])
    (waiting,) = lake.merged().tables
    assert waiting.status == "failed" and waiting.error
    assert (waiting.error["error"], waiting.error["exit_code"]) == ("RetryableError", 3)
    lake.staging.interval(position(1, 1150), position(1, 2000), [(BEFORE, NEW_ROW)])
    assert lake.one(lake.merged()).status == "applied"
    assert sorted(lake.rows(BEFORE).values()) == read


class ReadTable:
    """A table whose keys change at random, and what a load of it read, a part of the keys at each time."""

    def __init__(self, seed: int, image: str) -> None:
        dice = Random(seed)
        self.server = Server(dice, f"t{seed}_{image}", "int", image, both=False)
        for step in range(1, 60):
            self.server.transaction(number(1, 1000 + step), moves=step > 10)
            if step == 10:
                self.read = dict(self.server.rows)
            elif 10 < step <= 20:
                for key in [key for key in self.read.keys() | self.server.rows.keys() if dice.random() < 0.3]:
                    self.read.pop(key, None)
                    self.read.update({key: self.server.rows[key]} if key in self.server.rows else {})
        self.log = list(between(self.server.log, number(1, 1010), number(1, 1060)))


def test_any_changes_while_the_load_reads(lake: Lake) -> None:
    """The merge has all rows of the server, or stops the table before its first change."""
    seeds = range(30 if os.environ.get("LOADER_SWEEP") else 2)
    tables = {f"shop.t{seed}_{image}": ReadTable(seed, image) for seed in seeds for image in ("MINIMAL", "NOBLOB")}
    start, exact, stop = (position(1, 1000 + step) for step in (10, 20, 60))
    loads = [
        lake.staging.load(one.server.schema, list(one.read.values()), start, exact=exact) for one in tables.values()
    ]
    lake.loaded(*loads)
    lake.staging.interval(start, stop, [(one.server.schema, one.log) for one in tables.values()])
    results = lake.merged().tables
    for result in results:
        one = tables[result.table]
        found = Counter(tuple(map(plain, row)) for row in lake.rows(one.server.schema).values())
        if result.status == "applied":
            assert found == one.server.bag(), result.table
        else:
            assert result.error and result.error["what"] == "a change leaves columns out, and its row does not exist"
            assert found == Counter(one.read.values()), result.table
    assert sum(result.status == "applied" for result in results) > len(results) // 3


@pytest.mark.parametrize(
    "last",
    [
        table("orders", [ID, NAME], ["id"]),  # the order by the key of the failed merge names a column that goes
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
