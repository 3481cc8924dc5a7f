"""Main is moved by one attempt at a time, whatever else happens to the table meanwhile.

A catalog that fails, or loses a reply, is in test_outages.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from loader.materialise.iceberg.branch import Branch, drop_superseded
from loader.materialise.iceberg.publication import BranchLostError
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.jobs import materialise_job
from loader.materialise.merge import table_merge
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.plan.interval_chain import Chain, published_key
from loader.model.table import Column, TableSchema
from loader.spark.settings import SparkSettings
from loader.spark.submit import command, environment
from loader.staging.documents import Barrier
from loader.staging.published import Published
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import GENERATION, SOURCE, Change, fold, number, position, table

pytestmark = pytest.mark.integration

NUMBERED = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
P0 = position(1, 1000)
ROWS = [(1, "one"), (2, "two"), (3, "three")]
CHANGES = [
    Change("U", number(1, 1100), 5, (1, "first")),
    Change("D", number(1, 1200), 5, (2, "two")),
    Change("I", number(1, 1300), 5, (4, "four")),
]


@pytest.fixture
def ready(lake: Lake) -> Lake:
    """A loaded table with one interval staged for it."""
    lake.one(lake.loaded(lake.staging.load(NUMBERED, ROWS, P0)))
    lake.staging.interval(P0, position(1, 2000), [(NUMBERED, CHANGES)])
    return lake


def exact(lake: Lake) -> bool:
    return lake.rows(NUMBERED) == fold(NUMBERED, ROWS, 0, CHANGES)


def insert(lake: Lake, target: str, key: int) -> None:
    lake.sql(f"INSERT INTO {target} VALUES ({key}, 'by hand', 0, NULL)")


def test_the_second_of_two_branches_from_one_snapshot_is_lost(ready: Lake) -> None:
    base = ready.metadata(NUMBERED).head
    branches = [Branch(ready.warehouse, NUMBERED.name, base) for _ in range(2)]
    for key, branch in enumerate(branches, start=10):
        with branch.signed():
            insert(ready, branch.target, key)
    branches[0].publish(1)
    with pytest.raises(BranchLostError, match="main moved"):
        branches[1].publish(1)
    assert {(10,), (11,)} & set(ready.rows(NUMBERED)) == {(10,)}


def test_a_signature_does_not_stick_to_later_commits(ready: Lake) -> None:
    branch = Branch(ready.warehouse, NUMBERED.name, ready.metadata(NUMBERED).head)
    with branch.signed({"loader.applied": "1"}):
        insert(ready, branch.target, 10)
    insert(ready, branch.target, 11)
    metadata = ready.metadata(NUMBERED)
    later, signed, *_ = metadata.ancestry(metadata.branches[branch.name])
    assert (signed.summary["loader.applied"], signed.summary["loader.run"]) == ("1", branch.name)
    assert not [name for name in later.summary if name.startswith("loader.")]


def test_a_commit_of_another_on_the_branch_is_not_published(ready: Lake) -> None:
    branch = Branch(ready.warehouse, NUMBERED.name, ready.metadata(NUMBERED).head)
    with branch.signed():
        insert(ready, branch.target, 10)
    insert(ready, branch.target, 11)
    with pytest.raises(BranchLostError, match="not of this attempt"):
        branch.publish(1)
    assert ready.rows(NUMBERED) == {(row[0],): row for row in ROWS}


def test_a_branch_dropped_and_made_again_is_not_published(ready: Lake) -> None:
    base = ready.metadata(NUMBERED).head
    name = ready.warehouse.name(NUMBERED.name)
    branch = Branch(ready.warehouse, NUMBERED.name, base)
    with branch.signed():
        insert(ready, branch.target, 10)
    ready.sql(f"ALTER TABLE {name} DROP BRANCH `{branch.name}`")
    with pytest.raises(BranchLostError, match="dropped"):
        branch.publish(1)
    ready.sql(f"ALTER TABLE {name} CREATE BRANCH `{branch.name}`")
    with branch.signed():
        insert(ready, branch.target, 10)
    with pytest.raises(BranchLostError, match="not 2"):
        branch.publish(2)


def test_another_change_of_the_table_in_between_is_no_failure(ready: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    original = TableMetadata.transaction
    left = [2]

    def transaction(self: TableMetadata):
        change = original(self)
        if left[0]:
            left[0] -= 1
            ready.sql(f"ALTER TABLE {ready.warehouse.name(NUMBERED.name)} SET TBLPROPERTIES ('by.hand' = '{left[0]}')")
        return change

    monkeypatch.setattr(TableMetadata, "transaction", transaction)
    assert ready.one(ready.merged()).status == "applied"
    assert exact(ready)
    assert ready.metadata(NUMBERED).properties["by.hand"] == "0"


@pytest.mark.parametrize("moves", [1, 99])
def test_maintenance_in_between_makes_the_merge_start_over(
    ready: Lake, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    original = Branch.publish
    left = [moves]
    name = ready.warehouse.name(NUMBERED.name)

    def publish(*arguments):
        if left[0]:
            left[0] -= 1
            ready.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
        return original(*arguments)

    monkeypatch.setattr(Branch, "publish", publish)
    result = ready.merged()
    if moves == 1:
        assert ready.one(result).status == "applied"
        assert exact(ready)
    else:
        assert result.tables[0].error["error"] == "RetryableError"
        assert ready.rows(NUMBERED) == {(row[0],): row for row in ROWS}
    assert list(ready.metadata(NUMBERED).branches) == ["main"]


def test_a_faster_run_in_between_leaves_nothing_to_do(ready: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    original = table_merge._merge
    done = []

    def build(*arguments):
        if not done:
            done.append(True)
            chain, target = arguments[1], number(1, 2000)
            faster = Warehouse(ready.spark, ready.catalog)
            done.append(table_merge._attempt(MergePlanner(faster, chain), NUMBERED.name, target))
        return original(*arguments)

    monkeypatch.setattr(table_merge, "_merge", build)
    result = ready.one(ready.merged())
    assert (done[1].status, result.status) == ("applied", "already")
    assert result.snapshot == done[1].snapshot
    assert exact(ready)
    assert list(ready.metadata(NUMBERED).branches) == ["main"]


def test_a_faster_run_that_creates_the_table_leaves_nothing_to_do(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both runs plan while the warehouse does not have the table. Without a key, a second insert would be seen."""
    bags = TableSchema(NUMBERED.name, NUMBERED.columns, ())
    created = Barrier(
        seqno=number(1, 1050), position=position(1, 1050), statement="CREATE TABLE orders (id INT, name VARCHAR(9))",
        database="shop", sql_mode=1 << 21, mariadb=False, tables=("shop.orders",),
    )  # fmt: skip
    inserts = [Change("I", number(1, 1100 + key), 5, (key, "one")) for key in (1, 2)]
    lake.staging.interval(P0, position(1, 2000), [(bags, inserts)], [created])
    original = table_merge._merge
    done = []

    def build(*arguments):
        if not done:
            done.append(True)
            faster = MergePlanner(Warehouse(lake.spark, lake.catalog), arguments[1])
            done.append(table_merge._attempt(faster, bags.name, number(1, 2000)))
        return original(*arguments)

    monkeypatch.setattr(table_merge, "_merge", build)
    result = lake.one(lake.merged())
    assert (done[1].status, result.status) == ("applied", "already")
    assert lake.bag(bags.name, "id") == {(1,): 1, (2,): 1}
    assert list(lake.metadata(bags).branches) == ["main"]


def test_left_branches_are_dropped_once_main_has_passed_them(ready: Lake) -> None:
    metadata = ready.metadata(NUMBERED)
    killed = Branch(ready.warehouse, NUMBERED.name, metadata.head)
    insert(ready, killed.target, 77)
    others = {"main", "audit", "loader_users", "loader_replay_of_june"}
    for name in others - {"main"}:
        ready.sql(f"ALTER TABLE {ready.warehouse.name(NUMBERED.name)} CREATE BRANCH {name}")
    drop_superseded(ready.warehouse, NUMBERED.name)
    assert set(ready.metadata(NUMBERED).branches) == {*others, killed.name}
    ready.one(ready.merged())
    assert set(ready.metadata(NUMBERED).branches) == others
    assert exact(ready)


def test_a_commit_of_maintenance_does_not_hide_the_applied_position(ready: Lake) -> None:
    first = ready.one(ready.merged())
    name = ready.warehouse.name(NUMBERED.name)
    ready.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert ready.metadata(NUMBERED).head != first.snapshot
    assert ready.one(ready.merged()) == first.model_copy(
        update={
            "status": "already", "inserts": 0, "updates": 0, "deletes": 0, "bytes": 0, "rows_deleted": 0,
            "rows_inserted": 0, "seconds": 0.0,
        }
    )  # fmt: skip


def test_published_record_spares_old_manifests(ready: Lake) -> None:
    first = ready.merged()
    assert first.published == published_key(SOURCE, GENERATION, number(1, 1000))
    record = Published.read(ready.staging.store.get(first.published), "")
    assert record.stop_seqno == number(1, 2000)
    assert record.tables["shop.orders"].snapshot == first.tables[0].snapshot
    ready.staging.interval(position(1, 2000), position(1, 3000))
    second = ready.merged()
    assert ready.one(second).status == "unchanged"
    for start in (1000, 2000):  # gone with the retention of the staging store
        ready.staging.store.delete(f"shop/g1/{number(1, start):020d}/manifest.json")
    changes = [Change("I", number(1, 3100), 5, (5, "five"))]
    ready.staging.interval(position(1, 3000), position(1, 4000), [(NUMBERED, changes)])
    assert ready.one(ready.merged()).status == "applied"
    assert ready.rows(NUMBERED) == fold(NUMBERED, ROWS, 0, CHANGES + changes)


def test_published_record_does_not_count_for_a_table_that_was_rolled_back(ready: Lake) -> None:
    load = ready.metadata(NUMBERED).head
    ready.merged()
    name = ready.warehouse.name(NUMBERED.name)
    ready.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {load})")
    assert ready.rows(NUMBERED) == {(row[0],): row for row in ROWS}
    assert ready.one(ready.merged()).status == "applied"
    assert exact(ready)


def test_two_tables_at_once_do_not_sign_each_others_commits(lake: Lake) -> None:
    schemas = [table(f"t{place}", NUMBERED.columns, ["id"]) for place in range(4)]
    keys = [lake.staging.load(schema, ROWS, position(1, 1000 + place)) for place, schema in enumerate(schemas)]
    assert lake.loaded(*keys).exit_code == 0
    for place, schema in enumerate(schemas):
        assert lake.metadata(schema).applied.seqno == number(1, 1000 + place)


@pytest.mark.sweep
def test_two_processes_at_once(ready: Lake, settings: SparkSettings, spark: SparkSession) -> None:
    spec = ready.folder / "spec.json"
    spec.write_text(ready.merge_spec().model_dump_json())
    results = [ready.folder / f"result-{place}.json" for place in range(2)]
    processes = []
    for result in results:
        argv = command(Path(materialise_job.__file__), ["--spec", str(spec), "--result", str(result)], settings)
        processes.append(subprocess.Popen(argv, env={**os.environ, **environment(settings)}))
    assert [process.wait(timeout=200) for process in processes] == [0, 0]
    found = [json.loads(result.read_text())["tables"][0] for result in results]
    assert sorted(one["status"] for one in found) == ["already", "applied"]
    assert found[0]["snapshot"] == found[1]["snapshot"] == ready.metadata(NUMBERED).head
    assert exact(ready)
    assert list(ready.metadata(NUMBERED).branches) == ["main"]


def test_an_old_interval_run_again_publishes_no_view_of_tables_that_are_further(ready: Lake) -> None:
    key = ready.merged(number(1, 2000)).published
    deletion = Change("D", number(1, 2100), 5, ROWS[2])
    ready.staging.interval(position(1, 2000), position(1, 3000), [(NUMBERED, [deletion])])
    ready.merged()
    ready.staging.store.delete(key)
    again = ready.merged(number(1, 2000))
    assert ready.one(again).status == "already"
    assert Published.read(ready.staging.store.get(again.published), "").tables == {}
    assert (3,) not in ready.rows(NUMBERED)


@pytest.mark.parametrize(
    ("owner", "moment"),
    [(table_merge, "prepare_columns"), (TableMetadata, "transaction"), (TableMetadata, "metadata_of")],
    ids=["planned", "before", "within"],
)
@pytest.mark.parametrize(
    ("statement", "names"),
    [("RENAME COLUMN name TO label", ("label",)), ("ADD COLUMN label VARCHAR(9) AFTER name", ("name", "label"))],
    ids=["renamed", "added"],
)
def test_a_merge_that_was_overtaken_changes_no_columns(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, owner: object, moment: str, statement: str, names: tuple[str, ...]
) -> None:
    """Of a process without this catalog's lock. It planned with the columns of before."""
    lake.one(lake.loaded(lake.staging.load(NUMBERED, ROWS, P0)))
    altered = table(
        "orders", [NUMBERED.columns[0], *(replace(NUMBERED.columns[1], name=name) for name in names)], ["id"]
    )
    alter = Barrier(
        seqno=number(1, 1500), position=position(1, 1500), statement=f"ALTER TABLE orders {statement}",
        database="shop", sql_mode=1 << 21, mariadb=False, tables=("shop.orders",),
    )  # fmt: skip
    changes = [Change("U", number(1, 1600), 5, (1, *("after" for _ in names)))]
    lake.staging.interval(P0, position(1, 2000), [(NUMBERED, CHANGES), (altered, changes)], [alter])
    original, left = getattr(owner, moment), [number(1, 2000)]

    def meanwhile(*arguments: Any) -> Any:
        found = original(*arguments) if moment == "metadata_of" else None
        if left:
            planner = MergePlanner(
                Warehouse(lake.spark, lake.catalog, lake.rules), Chain(lake.staging.store, SOURCE, GENERATION)
            )
            assert table_merge._attempt(planner, NUMBERED.name, left.pop()).status == "applied"
        return found or original(*arguments)

    monkeypatch.setattr(owner, moment, meanwhile)
    assert lake.one(lake.merged()).error is None
    assert not left
    frame = lake.warehouse.session.table(lake.warehouse.name(NUMBERED.name))
    assert frame.columns == ["id", *names, "_seqno", "_committed_at"]
    assert {row[0]: row[1] for row in frame.collect()} == {1: "after", 3: "three", 4: "four"}
