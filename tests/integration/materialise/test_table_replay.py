"""Replays: a table that is right stays as it is, one that was damaged gets its rows back."""

from __future__ import annotations

import pytest

from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.jobs.replay_job import replay
from loader.materialise.merge import merge_stages
from loader.materialise.spec import ReplayResult, ReplaySpec, TableReplay
from loader.model.table import Column
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.renames.test_renames import barrier
from tests.integration.materialise.staged_writer import GENERATION, SOURCE, Change, number, position, table
from tests.integration.materialise.test_maintenance import spec as maintenance
from tests.support.spark import NewLake

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
PRICE = Column("price", "double")
ORDERS = table("orders", [ID, NAME, PRICE], ["id"])
BAGS = table("bags", [NAME], [])
P0 = position(1, 1000)
ROWS = [(1, "one", "1.5"), (2, "two", "-0"), (3, "three", None)]
CHANGES = [
    Change("U", number(1, 1100), 5, (1, "uno", "1.5")),
    Change("D", number(1, 1200), 5, (2, "two", "-0")),
    Change("I", number(1, 1300), 5, (4, "four", "1e300")),
    Change("I", number(1, 2100), 5, (5, "five", None)),
    Change("U", number(1, 2200), 5, (4, "cuatro", "0.1")),
]


@pytest.fixture
def ready(lake: Lake) -> Lake:
    lake.loaded(lake.staging.load(ORDERS, ROWS, P0), lake.staging.load(BAGS, [("a",)], P0))
    bag = [Change("I", number(1, 1150), 5, ("a",))]
    lake.staging.interval(P0, position(1, 2000), [(ORDERS, CHANGES[:3]), (BAGS, bag)])
    lake.staging.interval(position(1, 2000), position(1, 3000), [(ORDERS, CHANGES[3:])])
    assert lake.merged().exit_code == 0
    return lake


def replayed(lake: Lake, since: int, *tables: str, until: int = 0, publish: bool = False) -> ReplayResult:
    spec = ReplaySpec(
        source=SOURCE,
        generation=GENERATION,
        staging_root=lake.staging.store.root,
        catalog=lake.catalog,
        rules=lake.rules,
        since_seqno=since,
        until_seqno=until,
        tables=tables,
        publish=publish,
    )
    return replay(lake.spark, spec)


def one(lake: Lake, since: int, *, until: int = 0, publish: bool = False) -> TableReplay:
    (found,) = replayed(lake, since, "shop.orders", until=until, publish=publish).tables
    assert found.error is None
    return found


def test_a_table_that_is_right_stays_as_it_is(ready: Lake) -> None:
    head = ready.metadata(ORDERS).head
    for since in (number(1, 1000), number(1, 1200), number(1, 2000), number(1, 2150), number(1, 3000)):
        assert one(ready, since, publish=True).status == "same"
    assert ready.metadata(ORDERS).head == head
    assert list(ready.metadata(ORDERS).branches) == ["main"]


def test_planted_damage_is_shown_then_mended(ready: Lake) -> None:
    before, applied = ready.rows(ORDERS), ready.metadata(ORDERS).applied
    name = ready.warehouse.name(ORDERS.name)
    ready.sql(f"DELETE FROM {name} WHERE id = 1")
    ready.sql(f"UPDATE {name} SET price = 7 WHERE id = 4")
    ready.sql(f"INSERT INTO {name} VALUES (2, 'back', 0, 0, NULL)")
    damaged = ready.rows(ORDERS)
    shown = one(ready, number(1, 1000))
    assert (shown.status, shown.inserts, shown.updates, shown.deletes, shown.files) == ("differs", 1, 1, 1, 2)
    kinds = [(sample.before and sample.before["id"], sample.after and sample.after["id"]) for sample in shown.samples]
    assert kinds == [(None, 1), (4, 4), (2, None)]
    assert ready.rows(ORDERS) == damaged
    branch = f"{name}.`branch_{shown.branch}`"
    assert {row.id for row in ready.sql(f"SELECT id FROM {branch}")} == {row[0] for row in before.values()}
    built = ready.metadata(ORDERS).branches[shown.branch]
    assert one(ready, number(1, 1000)).branch == shown.branch
    assert one(ready, number(1, 1000), publish=True).status == "published"
    assert ready.rows(ORDERS) == before
    assert ready.metadata(ORDERS).head == built  # what was looked at is what is published
    stands = ready.metadata(ORDERS).applied
    assert applied and stands and (stands.seqno, stands.position) == (applied.seqno, applied.position)
    assert list(ready.metadata(ORDERS).branches) == ["main"]
    assert one(ready, number(1, 1000), publish=True).status == "same"
    assert {found.status for found in ready.merged().tables} <= {"already", "unchanged"}


def test_a_duplicated_key_is_a_difference(ready: Lake) -> None:
    before, name = ready.bag(ORDERS.name), ready.warehouse.name(ORDERS.name)
    ready.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id IN (1, 4)")
    ready.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id = 4")
    shown = one(ready, number(1, 1000))
    assert (shown.status, shown.inserts, shown.updates, shown.deletes) == ("differs", 0, 0, 4)
    assert one(ready, number(1, 1000), publish=True).status == "published"
    assert ready.bag(ORDERS.name) == before
    assert one(ready, number(1, 1000)).status == "same"


def test_a_key_whose_every_duplicate_is_wrong_gets_one_row(ready: Lake) -> None:
    before, name = ready.bag(ORDERS.name), ready.warehouse.name(ORDERS.name)
    ready.sql(f"UPDATE {name} SET name = 'wrong' WHERE id = 4")
    ready.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id = 4")
    found = one(ready, number(1, 1000), publish=True)
    assert (found.inserts, found.updates, found.deletes) == (0, 1, 1)
    assert ready.bag(ORDERS.name) == before


def test_a_duplicated_key_of_a_table_that_was_emptied_since_is_a_difference(ready: Lake) -> None:
    emptied = barrier(3100, "TRUNCATE orders", "orders")
    again = [Change("I", number(1, 3200), 5, (8, "eight", "8"))]
    ready.staging.interval(position(1, 3000), position(1, 4000), [(ORDERS, again)], [emptied])
    assert ready.merged().exit_code == 0
    before, name = ready.bag(ORDERS.name), ready.warehouse.name(ORDERS.name)
    ready.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id = 8")
    ready.sql(f"INSERT INTO {name} VALUES (9, 'stray', 0, 0, NULL), (9, 'stray', 0, 0, NULL)")
    assert one(ready, number(1, 1000), publish=True).deletes == 3
    assert ready.bag(ORDERS.name) == before


def test_a_branch_that_was_looked_at_is_built_anew_when_the_table_moved(ready: Lake) -> None:
    before, name = ready.rows(ORDERS), ready.warehouse.name(ORDERS.name)
    ready.sql(f"DELETE FROM {name} WHERE id = 1")
    shown = one(ready, number(1, 1000))
    built = ready.metadata(ORDERS).branches[shown.branch]
    ready.sql(f"DELETE FROM {name} WHERE id = 5")
    assert one(ready, number(1, 1000), publish=True).inserts == 2
    assert ready.rows(ORDERS) == before
    assert not ready.metadata(ORDERS).descends(ready.metadata(ORDERS).head, built)


def test_only_what_changed_since_then_is_mended(ready: Lake) -> None:
    before = ready.rows(ORDERS)
    ready.sql(f"UPDATE {ready.warehouse.name(ORDERS.name)} SET name = 'damaged' WHERE id IN (1, 5)")
    assert one(ready, number(1, 2000), publish=True).updates == 1
    after = ready.rows(ORDERS)
    assert (after[(5,)], after[(1,)][1]) == (before[(5,)], "damaged")


def test_rows_that_changed_up_to_an_end_get_their_newest_change(ready: Lake) -> None:
    """The row 4 changed before the end and after it, the row 5 only after it."""
    before = ready.rows(ORDERS)
    ready.sql(f"UPDATE {ready.warehouse.name(ORDERS.name)} SET name = 'damaged' WHERE id IN (1, 4, 5)")
    assert one(ready, number(1, 1100), until=number(1, 1299)).status == "same"
    shown = one(ready, number(1, 1100), until=number(1, 2150))
    assert (shown.updates, shown.branch) == (2, f"loader_replay_{number(1, 1100)}-{number(1, 2150)}")
    assert one(ready, number(1, 1100), until=number(1, 1300), publish=True).updates == 1
    after = ready.rows(ORDERS)
    assert (after[(4,)], after[(1,)][1], after[(5,)][1]) == (before[(4,)], "damaged", "damaged")
    assert one(ready, number(1, 1000), until=number(1, 3000), publish=True).updates == 2
    assert ready.rows(ORDERS) == before
    assert one(ready, number(1, 1000), until=number(1, 1050)).status == "same"


def test_a_table_whose_rows_are_all_compared_has_no_end(ready: Lake) -> None:
    (found,) = replayed(ready, number(1, 1000), "shop.bags", until=number(1, 1500)).tables
    assert found.status == "failed"
    assert found.error
    assert found.error["what"] == "the table cannot be replayed up to an earlier position"
    assert f": loader replay --from {number(1, 1000)} --table shop.bags" in found.error["hint"]
    assert replayed(ready, number(1, 1000), "shop.bags", until=number(1, 3000)).tables[0].status == "same"


def test_after_a_truncate_no_other_row_may_be_there(ready: Lake) -> None:
    emptied = barrier(3100, "TRUNCATE orders", "orders")
    again = [Change("I", number(1, 3200), 5, (8, "eight", "8"))]
    ready.staging.interval(position(1, 3000), position(1, 4000), [(ORDERS, again)], [emptied])
    assert ready.merged().exit_code == 0
    assert one(ready, number(1, 1000)).status == "same"
    (ended,) = replayed(ready, number(1, 1000), "shop.orders", until=number(1, 2000)).tables
    assert ended.error
    assert ended.error["why"] == "the table was emptied since the start, so all of its rows are compared"
    name = ready.warehouse.name(ORDERS.name)
    ready.sql(f"INSERT INTO {name} VALUES (1, 'never deleted', 0, 0, NULL)")
    ready.sql(f"UPDATE {name} SET name = 'x' WHERE id = 8")
    found = one(ready, number(1, 1000), publish=True)
    assert (found.inserts, found.updates, found.deletes) == (0, 1, 1)
    assert ready.rows(ORDERS) == {(8,): (8, "eight", 8.0)}


@pytest.mark.parametrize("since", [number(1, 1000), pytest.param(number(1, 2500), marks=pytest.mark.sweep)])
def test_a_table_that_a_statement_emptied_at_the_end_has_no_rows(ready: Lake, since: int) -> None:
    emptied = barrier(3100, "TRUNCATE orders", "orders")
    ready.staging.interval(position(1, 3000), position(1, 4000), [], [emptied])
    assert ready.merged().exit_code == 0
    assert one(ready, since).status == "same"
    name = ready.warehouse.name(ORDERS.name)
    ready.sql(f"INSERT INTO {name} VALUES (1, 'never deleted', 0, 0, NULL), (1, 'twice', 0, 0, NULL)")
    assert one(ready, since).deletes == 2
    assert one(ready, since, publish=True).status == "published"
    assert ready.rows(ORDERS) == {}
    assert one(ready, since).status == "same"


@pytest.mark.parametrize("expired", [False, pytest.param(True, marks=pytest.mark.sweep)])
def test_a_table_is_compared_from_its_newest_load_on(ready: Lake, *, expired: bool) -> None:
    """The load brought rows that the log before it lacks. It was exact only after its position."""
    rows = [(1, "eins", "1"), (2, "zwei", "2"), (4, "vier", "4")]
    ready.loaded(ready.staging.load(ORDERS, rows, position(1, 3000), exact=position(1, 3200)))
    later = [Change("U", number(1, 3100), 5, (4, "quattro", "4")), Change("U", number(1, 3200), 5, (4, "vier", "4"))]
    ready.staging.interval(position(1, 3000), position(1, 4000), [(ORDERS, later)])
    assert ready.merged().exit_code == 0
    if expired:
        maintain(ready.spark, maintenance(ready))
        assert not any(position.loaded for position in ready.metadata(ORDERS).applied_positions())
    before, name = ready.rows(ORDERS), ready.warehouse.name(ORDERS.name)
    found = one(ready, number(1, 1000), publish=True)
    assert (found.status, found.note) == ("same", f"compared from {position(1, 3000)} on, where it was loaded")
    assert one(ready, number(1, 3000)).note == ""
    ready.sql(f"UPDATE {name} SET name = 'damaged' WHERE id = 4")
    assert one(ready, number(1, 1000), publish=True).updates == 1
    assert ready.rows(ORDERS) == before
    (ended,) = replayed(ready, number(1, 1000), "shop.orders", until=number(1, 2500)).tables
    assert ended.error
    assert ended.error["why"] == f"the table was loaded at {position(1, 3000)}, which is not before that position"
    assert f": loader replay --from {number(1, 3000)} --table shop.orders" in ended.error["hint"]


@pytest.mark.parametrize("point", ["delete.after", pytest.param("insert.after", marks=pytest.mark.sweep)])
def test_two_replays_that_build_a_branch_at_once(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Such as a task that went on after its retry had begun. Only hadoop catalogs on a local disk have locks."""
    lake = new_lake("sqlite")
    lake.loaded(lake.staging.load(ORDERS, ROWS, P0))
    lake.staging.interval(P0, position(1, 2000), [(ORDERS, CHANGES[:3])])
    assert lake.merged().exit_code == 0
    before = lake.rows(ORDERS)
    lake.sql(f"UPDATE {lake.warehouse.name(ORDERS.name)} SET price = 7 WHERE id = 4")
    others = [point]

    def other_replay(reached: str) -> None:
        if [reached] == others:
            others.clear()
            assert one(lake, number(1, 1000)).status == "differs"

    monkeypatch.setattr(merge_stages, "failpoint", other_replay)
    assert one(lake, number(1, 1000)).status == "differs"
    assert others == []
    assert one(lake, number(1, 1000), publish=True).status == "published"
    assert lake.rows(ORDERS) == before
