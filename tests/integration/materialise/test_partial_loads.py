"""Row images that leave columns out, of a table that is loaded while its keys change."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from loader.materialise.rules import TableRule
from loader.materialise.spec import TableResult
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.random_logs import Server, between, plain
from tests.integration.materialise.staged_writer import Change, number, position, table

pytestmark = pytest.mark.integration

ID, NAME, SIZE = Column("id", "int"), Column("name", "varchar", charset="utf8mb4"), Column("size", "int")
BEFORE = table("orders", [ID, NAME, SIZE], ["id"])
P0 = position(1, 1000)


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


@pytest.mark.sweep
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

    def changes(self, low: int, high: int) -> list[Change]:
        return list(between(self.server.log, number(1, 1000 + low), number(1, 1000 + high)))


def read_tables(lake: Lake, seeds: range) -> dict[str, ReadTable]:
    """Tables of each row image, loaded: read from step 10 to step 20."""
    tables = {f"shop.t{seed}_{image}": ReadTable(seed, image) for seed in seeds for image in ("MINIMAL", "NOBLOB")}
    start, exact = position(1, 1010), position(1, 1020)
    lake.loaded(*(
        lake.staging.load(one.server.schema, list(one.read.values()), start, exact=exact) for one in tables.values()
    ))  # fmt: skip
    return tables


def rows_of(lake: Lake, one: ReadTable) -> Counter[tuple[Any, ...]]:
    found = lake.bag(one.server.schema.name, *(column.name for column in one.server.schema.columns))
    return Counter(tuple(map(plain, row)) for row in found.elements())


def stopped_for_its_row(result: TableResult) -> bool:
    return bool(result.error) and result.error["what"] == "a change leaves columns out, and its row does not exist"


@pytest.mark.sweep
def test_any_changes_while_the_load_reads(lake: Lake) -> None:
    """The merge has all rows of the server, or stops the table before its first change."""
    tables = read_tables(lake, range(30))
    lake.staging.interval(
        position(1, 1010), position(1, 1060), [(one.server.schema, one.changes(10, 60)) for one in tables.values()]
    )
    results = lake.merged().tables
    for result in results:
        one = tables[result.table]
        if result.status == "applied":
            assert rows_of(lake, one) == one.server.bag(), result.table
        else:
            assert stopped_for_its_row(result), result
            assert rows_of(lake, one) == Counter(one.read.values()), result.table
    assert sum(result.status == "applied" for result in results) > len(results) // 3


@pytest.mark.sweep
@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@pytest.mark.parametrize("seed", range(3))
def test_merges_before_and_after_the_end_of_the_load(lake: Lake, mode: Any, seed: int) -> None:
    """In the end a table that never stopped has all rows of the server.

    With soft_delete most stop: a row that was deleted before the load read it cannot be kept without all its columns.
    """
    kept = "deleted" if mode == "soft_delete" else ""
    lake.rules = (TableRule(tables=("*",), mode=mode, deleted_column=kept, seqno_column="", committed_at_column=""),)
    tables = read_tables(lake, range(100 * seed, 100 * seed + 10))
    cuts = [10, *sorted(Random(seed).sample(range(11, 60), 4)), 60]
    last: dict[str, TableResult] = {}
    for low, high in pairwise(cuts):
        lake.staging.interval(
            position(1, 1000 + low), position(1, 1000 + high),
            [(one.server.schema, found) for one in tables.values() if (found := one.changes(low, high))],
        )  # fmt: skip
        last |= {result.table: result for result in lake.merged().tables}
        failed = [result for result in last.values() if result.status == "failed"]
        assert all(result.error and result.error["error"] == "RetryableError" for result in failed)
        assert high < 20 or not failed, (cuts, failed)
    for name, one in tables.items():
        if last[name].status == "quarantined":
            assert stopped_for_its_row(last[name]), last[name]
            continue
        if kept:
            lake.sql(f"DELETE FROM {lake.warehouse.name(one.server.schema.name)} WHERE deleted")
        assert rows_of(lake, one) == one.server.bag(), (name, cuts)
    assert kept or sum(result.status != "quarantined" for result in last.values()) > len(last) // 3
