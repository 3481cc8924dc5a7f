"""Replays of tables without a key and of histories: rolled back to a snapshot and forward, then compared and swapped."""

from __future__ import annotations

import shlex
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.maintain.maintenance import Maintenance, Policy
from loader.materialise.merge import table_merge
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.rules import TableRule
from loader.materialise.spec import TableReplay
from loader.model.table import Column, TableSchema
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.renames.test_renames import barrier
from tests.integration.materialise.staged_writer import GENERATION, LOG, SOURCE, Change, number, position, table
from tests.integration.materialise.test_maintenance import one as maintained
from tests.integration.materialise.test_maintenance import spec as maintenance
from tests.integration.materialise.test_table_replay import replayed

pytestmark = pytest.mark.integration

ID, NAME = Column("id", "int"), Column("name", "varchar", charset="utf8mb4")
BAGS = table("bags", [NAME, Column("f", "double")], [])
AUDIT = table("audit", [ID, NAME], ["id"])
P0, P1, P2 = position(1, 1000), position(1, 2000), position(1, 3000)
LOADED, FIRST, SECOND = number(1, 1000), number(1, 2000), number(1, 3000)
BAG_ROWS = [("a", "0"), ("a", "0"), ("a", "-0"), (None, None), ("old", "1")]
BAG_CHANGES = [
    Change("D", number(1, 1100), 5, ("a", "0")),
    Change("I", number(1, 1100), 9, ("b", "2.5")),
    Change("I", number(1, 1200), 5, ("b", "2.5")),
    Change("D", number(1, 2100), 5, (None, None)),
    Change("I", number(1, 2100), 9, ("c", None)),
    Change("I", number(1, 2200), 5, ("b", "2.5")),
]
AUDIT_CHANGES = [
    Change("U", number(1, 1100), 5, (1, "uno")),
    Change("D", number(1, 1200), 5, (2, "two")),
    Change("I", number(1, 2100), 5, (2, "two")),
]


@pytest.fixture
def ready(lake: Lake) -> Lake:
    """A table without a key, loaded and merged twice."""
    lake.loaded(lake.staging.load(BAGS, BAG_ROWS, P0))
    for start, stop, changes in ((P0, P1, BAG_CHANGES[:3]), (P1, P2, BAG_CHANGES[3:])):
        lake.staging.interval(start, stop, [(BAGS, changes)])
        assert lake.merged().exit_code == 0
    return lake


@pytest.fixture
def audited(lake: Lake) -> Lake:
    """A history, loaded and merged once."""
    lake.rules = (TableRule(tables=("shop.audit",), mode="history"),)
    lake.loaded(lake.staging.load(AUDIT, [(1, "one"), (2, "two")], P0))
    lake.staging.interval(P0, P2, [(AUDIT, AUDIT_CHANGES)])
    assert lake.merged().exit_code == 0
    return lake


def rolled(lake: Lake, since: int, schema: TableSchema = BAGS, *, publish: bool = False) -> TableReplay:
    (found,) = replayed(lake, since, str(schema.name), publish=publish).tables
    return found


def done(lake: Lake, since: int, schema: TableSchema = BAGS, *, publish: bool = False) -> TableReplay:
    found = rolled(lake, since, schema, publish=publish)
    assert found.error is None, found.error
    return found


def refused(lake: Lake, since: int, schema: TableSchema = BAGS) -> dict[str, Any]:
    found = rolled(lake, since, schema, publish=True)
    assert found.error is not None
    assert found.error["error"] == "UnsupportedError"
    assert list(lake.metadata(schema).branches) == ["main"]
    return found.error


def counted(lake: Lake, schema: TableSchema = BAGS) -> Counter[tuple[str, ...]]:
    """The rows as texts, which tell -0.0: the source's columns of a bag, all of a history."""
    columns = "name, f" if schema is BAGS else "*"
    return Counter(tuple(map(str, row)) for row in lake.sql(f"SELECT {columns} FROM lake.shop.{schema.name.table}"))


def damage(lake: Lake) -> None:
    """One row is lost, one is there twice, one is another one."""
    name = lake.warehouse.name(BAGS.name)
    lake.sql(f"DELETE FROM {name} WHERE name = 'c'")
    lake.sql(f"INSERT INTO {name} VALUES ('old', 1, 0, NULL)")
    lake.sql(f"UPDATE {name} SET f = 0 WHERE CAST(f AS string) = '-0.0'")


def moves_on(lake: Lake, schema: TableSchema, start: int, changes: list[Change]) -> None:
    lake.staging.interval(position(1, start), position(1, start + 1000), [(schema, changes)])
    assert {one.status for one in lake.merged().tables} <= {"applied", "unchanged"}
    assert {one.status for one in lake.merged().tables} <= {"already", "unchanged"}


def test_a_table_that_is_right_stays_as_it_is(ready: Lake) -> None:
    name = ready.warehouse.name(BAGS.name)
    ready.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    head = ready.metadata(BAGS).head
    for since in (LOADED, FIRST, SECOND, number(1, 9000)):
        found = done(ready, since, publish=True)
        assert (found.status, found.position, found.branch) == ("same", P2, "")
    assert ready.metadata(BAGS).head == head
    assert list(ready.metadata(BAGS).branches) == ["main"]


@pytest.mark.parametrize("since", [pytest.param(LOADED, marks=pytest.mark.sweep), SECOND])
def test_planted_damage_is_shown_then_mended(ready: Lake, since: int) -> None:
    before, applied = counted(ready), ready.metadata(BAGS).applied
    damage(ready)
    damaged, head = counted(ready), ready.metadata(BAGS).head
    shown = done(ready, since)
    assert (shown.status, shown.inserts, shown.updates, shown.deletes) == ("differs", 2, 0, 2)
    samples = [(sample.before, sample.after) for sample in shown.samples]
    assert samples == [
        (None, {"name": "a", "f": -0.0}),
        (None, {"name": "c", "f": None}),
        ({"name": "a", "f": 0.0}, None),
        ({"name": "old", "f": 1.0}, None),
    ]
    assert (counted(ready), ready.metadata(BAGS).head) == (damaged, head)
    branch = f"{ready.warehouse.name(BAGS.name)}.`branch_{shown.branch}`"
    assert Counter((str(row.name), str(row.f)) for row in ready.sql(f"SELECT * FROM {branch}")) == before
    built = ready.metadata(BAGS).branches[shown.branch]
    assert done(ready, since).branch == shown.branch
    mended = done(ready, since, publish=True)
    assert (mended.status, mended.inserts, mended.deletes, mended.branch) == ("published", 2, 2, "")
    assert counted(ready) == before
    assert ready.metadata(BAGS).head == built  # what was looked at is what is published
    stands = ready.metadata(BAGS).applied
    assert applied and stands and stands.signature == applied.signature
    assert list(ready.metadata(BAGS).branches) == ["main"]
    assert done(ready, since, publish=True).status == "same"
    assert ready.metadata(BAGS).head == built
    gone = [Change("D", number(1, 3100), 5, ("c", None)), Change("I", number(1, 3100), 9, ("d", "4"))]
    moves_on(ready, BAGS, 3000, gone)
    assert counted(ready) == before - Counter([("c", "None")]) + Counter([("d", "4.0")])
    assert done(ready, since, publish=True).status == "same"


def test_a_history_gets_its_changes_back(audited: Lake) -> None:
    before, head = counted(audited, AUDIT), audited.metadata(AUDIT).head
    assert done(audited, LOADED, AUDIT, publish=True).status == "same"
    assert audited.metadata(AUDIT).head == head
    name = audited.warehouse.name(AUDIT.name)
    audited.sql(f"DELETE FROM {name} WHERE _op = 'U'")
    audited.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE _op = 'D'")
    audited.sql(f"UPDATE {name} SET name = 'three' WHERE _seqno = {number(1, 2100)}")
    audited.sql(f"UPDATE {name} SET _row_offset = 7 WHERE id = 1 AND _op = 'I'")
    for status, rows in (("published", 3), ("same", 0)):
        found = done(audited, LOADED, AUDIT, publish=True)
        assert (found.status, found.inserts, found.deletes) == (status, rows, rows)
    assert counted(audited, AUDIT) == before
    moves_on(audited, AUDIT, 3000, [Change("D", number(1, 3100), 5, (2, "two"))])
    assert sum((counted(audited, AUDIT) - before).values()) == 1


def test_what_a_history_is_not_replayed_over(audited: Lake) -> None:
    moves_on(audited, AUDIT, 3000, [Change("U", number(1, 3100), 5, (1, None), "02")])
    assert refused(audited, SECOND, AUDIT)["why"] == "binlog_row_image was not FULL on the server"
    emptied = barrier(4100, "TRUNCATE audit", "audit")
    again = [Change("I", number(1, 4200), 5, (9, "nine"))]
    audited.staging.interval(position(1, 4000), position(1, 5000), [(AUDIT, again)], [emptied])
    assert audited.merged().exit_code == 0
    assert refused(audited, number(1, 4000), AUDIT)["why"].endswith("emptied since then")


def test_damage_that_stops_a_merge_is_mended_and_the_merge_goes_on(ready: Lake) -> None:
    before = counted(ready)
    damage(ready)
    ready.staging.interval(P2, position(1, 4000), [(BAGS, [Change("D", number(1, 3100), 5, ("c", None))])])
    (failed,) = ready.merged().tables
    assert failed.status == "quarantined"
    assert done(ready, LOADED, publish=True).status == "published"
    ready.staging.store.delete(next(iter(ready.staging.store.list("shop/quarantine/"))).key)
    assert ready.merged().exit_code == 0
    assert counted(ready) == before - Counter([("c", "None")])


@pytest.mark.sweep
def test_without_a_snapshot_there_it_is_refused_and_the_hint_works(ready: Lake) -> None:
    damage(ready)
    for since in (number(1, 4), number(1, 1150), number(1, 2150)):
        error = refused(ready, since)
        assert error["what"].endswith("can only be replayed from the position of one of their snapshots")
        command, words = shlex.split(error["hint"])[:2], shlex.split(error["hint"])[2:]
        assert (command, words[0], words[2:]) == (["loader", "replay"], "--from", ["--table", "shop.bags"])
        assert words[1] == {number(1, 4): P0, number(1, 1150): P0, number(1, 2150): P1}[since]
    # Between two records, where nothing of the table lies between, the snapshot before stands there as well.
    assert done(ready, number(1, 1050)).inserts == 2
    assert done(ready, number(1, 1050), publish=True).status == "published"
    # What main had since its snapshot is no part of it any more.
    assert refused(ready, FIRST)["hint"] == f"loader replay --from {P0} --table shop.bags"


@pytest.mark.sweep
def test_an_expired_snapshot_is_refused(ready: Lake) -> None:
    maintain(ready.spark, maintenance(ready))
    assert [one.seqno for one in ready.metadata(BAGS).applied_positions()] == [SECOND]
    for since in (LOADED, FIRST):
        assert refused(ready, since)["hint"] == f"loader replay --from {P2} --table shop.bags"
    assert done(ready, SECOND).status == "same"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (
            ["ALTER TABLE bags DROP COLUMN f", "ALTER TABLE bags ADD COLUMN f double"],
            "the table was altered since then",
        ),
        (
            ["DROP TABLE bags", "CREATE TABLE bags (name varchar(9), f double)"],
            "dropped, renamed or emptied since then",
        ),
    ],
)
def test_what_changed_the_table_as_a_whole_is_refused(ready: Lake, statements: list[str], why: str) -> None:
    barriers = [barrier(3100 + number, statement, "bags") for number, statement in enumerate(statements)]
    again = [Change("I", number(1, 3200), 5, ("x", "1"))]
    ready.staging.interval(P2, position(1, 4000), [(BAGS, again)], barriers)
    assert ready.merged().exit_code == 0
    error = refused(ready, SECOND)
    assert error["why"].endswith(why)
    assert error["hint"] == f"loader replay --from {position(1, 4000)} --table shop.bags"
    assert done(ready, number(1, 4000)).status == "same"


def test_truncate_a_newer_load_and_statements_that_do_nothing(ready: Lake) -> None:
    idle = barrier(3050, "CREATE TABLE IF NOT EXISTS bags (name varchar(9))", "bags")
    again = [Change("I", number(1, 3200), 5, ("x", "1"))]
    barriers = [idle, barrier(3100, "TRUNCATE bags", "bags")]
    ready.staging.interval(P2, position(1, 4000), [(BAGS, again)], barriers)
    assert ready.merged().exit_code == 0
    assert done(ready, LOADED).status == "same"
    ready.sql(f"INSERT INTO {ready.warehouse.name(BAGS.name)} VALUES ('a', 0, 0, NULL)")
    assert done(ready, SECOND, publish=True).deletes == 1
    assert counted(ready) == Counter([("x", "1.0")])
    ready.loaded(ready.staging.load(BAGS, [("y", "1")], position(1, 5000)))
    error = refused(ready, LOADED)
    assert (error["why"], error["hint"]) == (
        "the table was loaded again since then",
        f"loader replay --from {position(1, 5000)} --table shop.bags",
    )


@pytest.mark.sweep
def test_a_shown_branch_stays_until_the_table_changes(ready: Lake) -> None:
    damage(ready)
    shown = done(ready, LOADED)
    policy = Policy(datetime.now(UTC) - timedelta(days=7), {}, datetime.now(UTC))
    swept = Maintenance(ready.warehouse, BAGS.name, policy).run(SOURCE, {GENERATION: LOG})
    assert (swept.branches, set(ready.metadata(BAGS).branches)) == (0, {"main", shown.branch})
    # Main went on: what the branch was made for is the past.
    ready.sql(f"INSERT INTO {ready.warehouse.name(BAGS.name)} VALUES ('more', 1, 0, NULL)")
    newer = done(ready, LOADED)
    assert (newer.deletes, newer.branch != shown.branch) == (3, True)
    assert maintained(maintain(ready.spark, maintenance(ready, 7, tables=("shop.bags",)))).branches == 1
    assert set(ready.metadata(BAGS).branches) == {"main", newer.branch}
    ready.staging.interval(P2, position(1, 4000), [(BAGS, [Change("I", number(1, 3100), 5, ("z", "1"))])])
    assert ready.merged().exit_code == 0
    assert list(ready.metadata(BAGS).branches) == ["main"]


@pytest.mark.sweep
def test_views_stay_after_main_was_swapped(ready: Lake) -> None:
    viewed = {one.seqno: one.snapshot for one in ready.metadata(BAGS).applied_positions()}[FIRST]
    name = ready.warehouse.name(BAGS.name)
    then = Counter(ready.sql(f"SELECT * FROM {name} VERSION AS OF {viewed}"))
    damage(ready)
    assert done(ready, LOADED, publish=True).status == "published"
    policy = Policy(datetime.now(UTC) + timedelta(days=1), {"shop.bags": {viewed}}, datetime.now(UTC))
    assert Maintenance(ready.warehouse, BAGS.name, policy).run(SOURCE, {GENERATION: LOG}).expired > 0
    assert Counter(ready.sql(f"SELECT * FROM {name} VERSION AS OF {viewed}")) == then
    moves_on(ready, BAGS, 3000, [Change("I", number(1, 3100), 5, ("z", "1"))])


@pytest.mark.parametrize(
    "moment", [pytest.param("transaction", marks=pytest.mark.sweep), "metadata_of"], ids=["before", "within"]
)
def test_a_merge_meanwhile_makes_the_replay_start_over(
    ready: Lake, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Of a process without this catalog's lock, before the transaction that swaps main or inside it.

    It ends before it drops the branches that it has overtaken: only main says that the replay is lost.
    """
    before, original, left = counted(ready), getattr(TableMetadata, moment), [number(1, 4000)]
    damage(ready)
    ready.staging.interval(P2, position(1, 4000), [(BAGS, [Change("I", number(1, 3100), 5, ("z", "1"))])])
    monkeypatch.setattr(table_merge, "drop_superseded", lambda *_: None)

    def meanwhile(*arguments: Any) -> Any:
        found = original(*arguments) if moment == "metadata_of" else None
        if left:
            target = left.pop()
            other = Warehouse(ready.spark, ready.catalog, ready.rules)
            chain = Chain(ready.staging.store, SOURCE, GENERATION)
            assert table_merge._attempt(MergePlanner(other, chain), BAGS.name, target).status == "applied"
        return found or original(*arguments)

    monkeypatch.setattr(TableMetadata, moment, meanwhile)
    found = done(ready, LOADED, publish=True)
    assert (found.status, found.position) == ("published", position(1, 4000))
    assert counted(ready) == before + Counter([("z", "1.0")])
    assert list(ready.metadata(BAGS).branches) == ["main"]
    assert done(ready, LOADED, publish=True).status == "same"


def test_two_replays_at_once_have_their_effect_once(ready: Lake) -> None:
    before = counted(ready)
    damage(ready)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: rolled(ready, LOADED, publish=True), range(2)))
    assert sorted(one.status for one in both) == ["published", "same"]
    assert counted(ready) == before
