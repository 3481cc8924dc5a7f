"""Maintenance does what is needed, loses no position and no view, and may be cut short or run beside merges."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loader.materialise.iceberg.branch import Branch
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.maintain.maintenance import Maintenance, Policy
from loader.materialise.maintain.snapshot_retention import find_viewed_snapshots
from loader.materialise.maintain.spec import MaintainResult, MaintainSpec, TableMaintained
from loader.model.table import Column
from loader.staging.published import Published
from tests.integration.materialise.killable import run_until
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import GENERATION, LOG, SOURCE, Change, fold, number, position, table

pytestmark = pytest.mark.integration

ORDERS = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
ROWS = [(key, "loaded") for key in range(100)]
NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=1)


def changes(start: int) -> list[Change]:
    """Every seventh key, another seventh each time."""
    return [
        Change("U", number(1, start + 100), 5 * key, (key, f"at {start}")) for key in range(start // 1000 % 7, 100, 7)
    ]


def merged(lake: Lake, *starts: int) -> list[Published]:
    """Merges of an interval each, and their records."""
    records = []
    for start in starts:
        lake.staging.interval(position(1, start), position(1, start + 1000), [(ORDERS, changes(start))])
        result = lake.merged()
        assert lake.one(result).status == "applied"
        records.append(Published.read(lake.staging.store.get(result.published), result.published))
    return records


@pytest.fixture
def loaded(lake: Lake) -> Lake:
    lake.one(lake.loaded(lake.staging.load(ORDERS, ROWS, position(1, 1000))))
    return lake


@pytest.fixture
def busy(loaded: Lake) -> Lake:
    """A loaded table and four merges."""
    loaded.records = merged(loaded, *range(1000, 5000, 1000))
    return loaded


def test_a_table_that_was_never_loaded_keeps_no_snapshots_of_others(loaded: Lake) -> None:
    never = table("never", ORDERS.columns, ["id"])
    for start in range(1000, 5000, 1000):
        files = [(ORDERS, changes(start)), (never, [Change("I", number(1, start + 100), 5, (start, "new"))])]
        loaded.staging.interval(position(1, start), position(1, start + 1000), files)
        result = loaded.merged()
        assert {one.table: one.status for one in result.tables} == {
            "shop.never": "quarantined", "shop.orders": "applied",
        }  # fmt: skip
    kept = maintain(loaded.spark, spec(loaded, keep_days=1))
    assert one(kept).expired == 0
    found = maintain(loaded.spark, spec(loaded))
    assert one(found).expired == 8
    assert exact(loaded, 4000)


def exact(lake: Lake, last: int) -> bool:
    every = [change for start in range(1000, last + 1000, 1000) for change in changes(start)]
    return lake.rows(ORDERS) == fold(ORDERS, ROWS, 0, every)


def spec(lake: Lake, keep_days: float = 0, **more) -> MaintainSpec:
    return MaintainSpec(
        source=SOURCE, generation=GENERATION, staging_root=lake.staging.store.root, catalog=lake.catalog,
        keep_days=keep_days, **more,
    )  # fmt: skip


def one(result: MaintainResult) -> TableMaintained:
    (found,) = result.tables
    assert found.error is None, found.error
    return found


def files(lake: Lake) -> set[Path]:
    return {path for path in (lake.folder / "warehouse").rglob("*") if path.is_file() and path.suffix != ".crc"}


def aged(path: Path, days: float) -> None:
    moment = NOW.timestamp() - days * 86_400
    os.utime(path, (moment, moment))


def orphan(lake: Lake, name: str, days: float) -> Path:
    path = next((lake.folder / "warehouse").rglob("data")) / name
    path.write_bytes(b"x")
    aged(path, days)
    return path


def test_what_is_needed_is_done_once(busy: Lake) -> None:
    applied = busy.metadata(ORDERS).applied
    first, *_ = busy.metadata(ORDERS).snapshots
    lost = Branch(busy.warehouse, ORDERS.name, first)
    begun = Branch(busy.warehouse, ORDERS.name, busy.metadata(ORDERS).head)
    old, young = orphan(busy, "old.parquet", 4), orphan(busy, "young.parquet", 2)

    before = files(busy)
    planned = one(maintain(busy.spark, spec(busy, dry_run=True)))
    assert files(busy) == before
    assert (planned.compacted, planned.orphans, planned.branches) == (5, 1, 1)
    assert (planned.before, planned.before.data_files, planned.before.delete_files > 0) == (planned.after, 5, True)

    done = one(maintain(busy.spark, spec(busy)))
    assert (done.compacted, done.orphans, done.branches, done.manifests) == (5, 1, 1, 0)
    # Beside those that were to go already, those that the compaction made needless.
    assert done.expired >= planned.expired > 0
    assert (done.after.data_files, done.after.delete_files) == (1, 0)
    assert done.before == planned.before
    assert (old.exists(), young.exists()) == (False, True)
    assert set(busy.metadata(ORDERS).branches) == {"main", begun.name}
    assert lost.name not in busy.metadata(ORDERS).branches

    assert busy.metadata(ORDERS).applied == applied
    assert exact(busy, 4000)
    view = busy.records[-1].tables["shop.orders"].snapshot
    assert len(busy.sql(f"SELECT * FROM {busy.warehouse.name(ORDERS.name)} VERSION AS OF {view}")) == 100

    again = one(maintain(busy.spark, spec(busy)))
    assert (again.compacted, again.expired, again.orphans, again.manifests) == (0, 0, 0, 0)
    assert again.branches == 1  # the compaction has overtaken the other
    assert again.before == again.after == done.after

    # Commits of others on top of the one with the position of a table that is quiet.
    name = busy.warehouse.name(ORDERS.name)
    for _ in range(2):
        busy.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    Maintenance(busy.warehouse, ORDERS.name, Policy(LATER, {}, NOW)).run(SOURCE, {GENERATION: LOG})
    assert busy.metadata(ORDERS).applied == applied
    merged(busy, 5000)
    assert exact(busy, 5000)


def test_within_their_time_snapshots_and_views_stay(loaded: Lake) -> None:
    records = merged(loaded, 1000, 2000, 3000)
    before = set(loaded.metadata(ORDERS).snapshots)
    assert one(maintain(loaded.spark, spec(loaded, keep_days=7))).expired == 0
    assert before <= set(loaded.metadata(ORDERS).snapshots)
    for record, days in zip(records, (10, 8, 0), strict=True):
        aged(loaded.staging.root / f"shop/g1/{record.stop_seqno - 1000:020d}/published.json", days)
    kept = find_viewed_snapshots(loaded.staging.store, SOURCE, GENERATION, NOW - timedelta(days=7))
    # The view of eight days ago was still the newest one seven days ago.
    snapshots = [record.tables["shop.orders"].snapshot for record in records]
    assert kept == {"shop.orders": set(snapshots[1:])}
    Maintenance(loaded.warehouse, ORDERS.name, Policy(LATER, kept, NOW)).run(SOURCE, {GENERATION: LOG})
    left = set(loaded.metadata(ORDERS).snapshots)
    assert [one in left for one in snapshots] == [False, True, True]
    assert loaded.metadata(ORDERS).applied.seqno == number(1, 4000)

    # While a table is quarantined it may need others as they were before.
    key = f"shop/g1/{records[1].stop_seqno - 1000:020d}/published.json"
    with loaded.staging.store.writing(key) as sink:
        sink.write(records[1].model_copy(update={"behind": {"shop.items": 5}}).canonical())
    aged(loaded.staging.root / key, 8)
    assert find_viewed_snapshots(loaded.staging.store, SOURCE, GENERATION, NOW) == {"shop.orders": set(snapshots)}


@pytest.mark.sweep
def test_maintenance_killed_in_the_middle_heals(busy: Lake) -> None:
    for point in ("compact.after", "expire.after"):
        assert run_until(busy.spark, point, spec(busy), busy.folder) == -signal.SIGKILL
        assert exact(busy, 4000)
    done = one(maintain(busy.spark, spec(busy)))
    assert (done.compacted, done.expired, done.after.data_files) == (0, 0, 1)
    merged(busy, 5000)
    assert exact(busy, 5000)


def test_what_others_did_to_a_table_is_named(loaded: Lake) -> None:
    name = loaded.warehouse.name(ORDERS.name)
    loaded.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT 1 AS id, 'x' AS name")
    loaded.staging.interval(position(1, 1000), position(1, 2000), [(ORDERS, changes(1000))])
    (error,) = (result.error for result in loaded.merged().tables)
    assert error["what"] == "the table was replaced in the warehouse"
    assert "initial-load --table shop.orders --again" in error["hint"]
    head = loaded.metadata(ORDERS).head
    (found,) = maintain(loaded.spark, spec(loaded)).tables
    assert (found.error["what"], loaded.metadata(ORDERS).head) == ("the table was replaced in the warehouse", head)

    loaded.sql(f"DROP TABLE {name}")
    loaded.sql(f"CREATE TABLE {name} (id int) USING iceberg")
    (found,) = maintain(loaded.spark, spec(loaded)).tables
    assert found.error["what"] == "the warehouse's table is not made by the loader"
    loaded.sql(f"DROP TABLE {name}")
    result = maintain(loaded.spark, spec(loaded))
    assert (result.tables[0].error["what"], result.exit_code) == ("the table is gone from the warehouse", 4)
