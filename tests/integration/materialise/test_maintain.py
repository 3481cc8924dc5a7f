"""Maintenance does what is needed, loses no position and no view, and may be cut short or run beside merges."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loader.materialise import merge
from loader.materialise.branch import Branch
from loader.materialise.keeping import viewed
from loader.materialise.maintain import Maintenance, Policy
from loader.materialise.maintain_job import maintain
from loader.materialise.maintain_spec import MaintainResult, MaintainSpec, TableMaintained
from loader.model.table import Column
from loader.staging.documents import Published
from tests.integration.materialise.killable import run_until
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import GENERATION, SOURCE, Change, fold, number, position, table

pytestmark = pytest.mark.integration

ORDERS = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
ROWS = [(key, "loaded") for key in range(100)]
NOW = datetime.now(UTC)


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
def busy(lake: Lake) -> Lake:
    """A loaded table and four merges."""
    lake.one(lake.loaded(lake.staging.load(ORDERS, ROWS, position(1, 1000))))
    lake.records = merged(lake, *range(1000, 5000, 1000))
    return lake


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
    applied = busy.history(ORDERS).applied
    first, *_ = busy.history(ORDERS).snapshots
    lost = Branch(busy.warehouse, ORDERS.name, first)
    begun = Branch(busy.warehouse, ORDERS.name, busy.history(ORDERS).head)
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
    assert set(busy.history(ORDERS).branches) == {"main", begun.name}
    assert lost.name not in busy.history(ORDERS).branches

    assert busy.history(ORDERS).applied == applied
    assert exact(busy, 4000)
    view = busy.records[-1].tables["shop.orders"].snapshot
    assert len(busy.sql(f"SELECT * FROM {busy.warehouse.name(ORDERS.name)} VERSION AS OF {view}")) == 100

    again = one(maintain(busy.spark, spec(busy)))
    assert (again.compacted, again.expired, again.orphans, again.manifests) == (0, 0, 0, 0)
    assert again.branches == 1  # the compaction has overtaken the other
    assert again.before == again.after == done.after
    merged(busy, 5000)
    assert exact(busy, 5000)


def test_within_their_time_snapshots_and_views_stay(busy: Lake) -> None:
    history = busy.history(ORDERS)
    assert one(maintain(busy.spark, spec(busy, keep_days=7))).expired == 0
    assert set(history.snapshots) < set(busy.history(ORDERS).snapshots)
    for record, days in zip(busy.records[-3:], (10, 8, 0), strict=True):
        aged(busy.staging.root / f"shop/g1/{record.stop_seqno - 1000:020d}/published.json", days)
    since = NOW - timedelta(days=7)
    kept = viewed(busy.staging.store, SOURCE, GENERATION, since)
    # The view of eight days ago was still the newest one seven days ago.
    assert kept == {"shop.orders": {record.tables["shop.orders"].snapshot for record in busy.records[-2:]}}
    Maintenance(busy.warehouse, ORDERS.name, Policy(datetime.now(UTC), kept, NOW)).run(SOURCE, (GENERATION,))
    left = set(busy.history(ORDERS).snapshots)
    assert [record.tables["shop.orders"].snapshot in left for record in busy.records[-3:]] == [False, True, True]
    assert busy.history(ORDERS).applied.seqno == number(1, 5000)


def test_a_quiet_table_keeps_the_snapshot_with_its_position(busy: Lake) -> None:
    name = busy.warehouse.name(ORDERS.name)
    for _ in range(2):  # commits of others on top of it
        busy.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    policy = Policy(datetime.now(UTC) + timedelta(days=1), {}, NOW)
    Maintenance(busy.warehouse, ORDERS.name, policy).run(SOURCE, (GENERATION,))
    history = busy.history(ORDERS)
    assert len(history.snapshots) == 3
    assert history.applied.seqno == number(1, 5000)
    merged(busy, 5000)
    assert exact(busy, 5000)


@pytest.mark.parametrize("point", ["compact.after", "expire.after"])
def test_maintenance_killed_in_the_middle_heals(busy: Lake, point: str) -> None:
    assert run_until(busy.spark, point, spec(busy), busy.folder) == -signal.SIGKILL
    assert exact(busy, 4000)
    done = one(maintain(busy.spark, spec(busy)))
    assert (done.compacted, done.after.data_files) == (0, 1)
    assert exact(busy, 4000)
    merged(busy, 5000)


def test_a_merge_that_waits_while_a_table_is_compacted(busy: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the catalog that needs a lock neither meets the other; see the contract of catalogs for those that do."""
    original, held = merge.table_lock, []

    def lock(catalog, name):
        if not held:
            held.append(one(maintain(busy.spark, spec(busy))).compacted)
        return original(catalog, name)

    monkeypatch.setattr(merge, "table_lock", lock)
    merged(busy, 5000)
    assert held == [5]
    assert exact(busy, 5000)


def test_what_others_did_to_a_table_is_named(busy: Lake) -> None:
    name = busy.warehouse.name(ORDERS.name)
    busy.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT 1 AS id, 'x' AS name")
    busy.staging.interval(position(1, 5000), position(1, 6000), [(ORDERS, changes(5000))])
    (error,) = (result.error for result in busy.merged().tables)
    assert error["what"] == "the table was replaced in the warehouse"
    assert "initial-load --table shop.orders --again" in error["hint"]
    head = busy.history(ORDERS).head
    (found,) = maintain(busy.spark, spec(busy)).tables
    assert (found.error["what"], busy.history(ORDERS).head) == ("the table was replaced in the warehouse", head)

    busy.sql(f"DROP TABLE {name}")
    busy.sql(f"CREATE TABLE {name} (id int) USING iceberg")
    (found,) = maintain(busy.spark, spec(busy)).tables
    assert found.error["what"] == "the warehouse's table is not made by the loader"
    busy.sql(f"DROP TABLE {name}")
    result = maintain(busy.spark, spec(busy))
    assert (result.tables[0].error["what"], result.exit_code) == ("the table is gone from the warehouse", 4)
