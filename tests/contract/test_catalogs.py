"""One suite over every kind of Iceberg catalog: a merge has its effect once, whoever else commits and whatever is lost.

Kills at every point are in tests/integration/materialise/faults/test_kill.py, over the same catalogs. That a hadoop catalog on
an object store is refused is in test_refusals.py there.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from infra.postgres import PASSWORD
from loader.materialise.iceberg import publication
from loader.materialise.iceberg.branch import Branch
from loader.materialise.iceberg.publication import BranchLostError, swap_metadata
from loader.materialise.jobs.maintain_job import maintain
from loader.materialise.maintain.spec import MaintainSpec
from loader.model.table import Column
from loader.staging.documents import Barrier
from tests.integration.materialise.killable import on_the_jvm
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import GENERATION, SOURCE, Change, fold, number, position, table
from tests.support.catalogs import CATALOGS
from tests.support.spark import NewLake
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

COLUMNS = [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")]
ORDERS = table("orders", COLUMNS, ["id"])
ROWS = [(key, "loaded") for key in range(30)]


# What is on the hadoop catalog alone is in tests/integration/materialise.
@pytest.fixture(params=CATALOGS if IN_SWEEP else ["sqlite", "postgresql"])
def loaded(request: pytest.FixtureRequest, new_lake: NewLake) -> Lake:
    """A table with its rows, on each catalog."""
    lake = new_lake(request.param)
    lake.kind = request.param
    assert lake.one(lake.loaded(lake.staging.load(ORDERS, ROWS, position(1, 1000)))).status == "applied"
    return lake


def changes(start: int) -> list[Change]:
    return [Change("U", number(1, start + 100), key, (key, f"at {start}")) for key in range(start // 1000, 30, 3)]


def staged(lake: Lake, start: int) -> None:
    lake.staging.interval(position(1, start), position(1, start + 1000), [(ORDERS, changes(start))])


def exact(lake: Lake, last: int) -> bool:
    every = [change for start in range(1000, last + 1000, 1000) for change in changes(start)]
    return lake.rows(ORDERS) == fold(ORDERS, ROWS, 0, every)


def applied(lake: Lake) -> list[int]:
    """The positions that main's commits carry, newest first: each once."""
    metadata = lake.metadata(ORDERS)
    summaries = (snapshot.summary for snapshot in metadata.ancestry(metadata.head))
    return [int(summary["loader.applied"]) for summary in summaries if "loader.applied" in summary]


def test_a_merge_has_its_effect_once(loaded: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    staged(loaded, 1000)
    first = loaded.one(loaded.merged())
    assert (first.status, exact(loaded, 1000)) == ("applied", True)
    before = loaded.metadata(ORDERS).snapshots
    again = loaded.one(loaded.merged())
    assert (again.status, again.snapshot, loaded.metadata(ORDERS).snapshots) == ("already", first.snapshot, before)

    # A commit that happened, and whose reply was lost.
    staged(loaded, 2000)

    def loses_replies(*arguments) -> None:
        swap_metadata(*arguments)
        raise ConnectionError("the reply was lost")

    with monkeypatch.context() as patch:
        patch.setattr(publication, "swap_metadata", loses_replies)
        assert loaded.one(loaded.merged()).status == "applied"
    assert exact(loaded, 2000)

    # Of two branches from one snapshot the second is lost.
    base = loaded.metadata(ORDERS).head
    branches = [Branch(loaded.warehouse, ORDERS.name, base) for _ in range(2)]
    for key, branch in enumerate(branches, start=100):
        with branch.signed():
            loaded.sql(f"INSERT INTO {branch.target} VALUES ({key}, 'by hand', 0, NULL)")
    branches[1].publish(1)
    with pytest.raises(BranchLostError, match="main moved"):
        branches[0].publish(1)
    assert {(100,), (101,)} & set(loaded.rows(ORDERS)) == {(101,)}
    assert applied(loaded) == [number(1, 3000), number(1, 2000), number(1, 1000)]


def test_columns_change_with_the_rows(loaded: Lake) -> None:
    later = table("orders", [Column("id", "bigint"), COLUMNS[1], Column("a.b", "decimal", size=9, scale=2)], ["id"])
    altered = Barrier(
        seqno=number(1, 1500), position=position(1, 1500), database="shop", sql_mode=1 << 21, mariadb=False,
        statement="ALTER TABLE orders MODIFY id BIGINT, ADD COLUMN `a.b` DECIMAL(9,2)", tables=("shop.orders",),
    )  # fmt: skip
    last = Change("U", number(1, 1600), 7, (7, "altered", "1.50"))
    loaded.staging.interval(position(1, 1000), position(1, 2000), [(ORDERS, changes(1000)), (later, [last])], [altered])
    assert loaded.one(loaded.merged()).status == "applied"
    assert loaded.rows(later)[(7,)] == (7, "altered", Decimal("1.50"))
    assert loaded.rows(later)[(8,)] == (8, "loaded", None)
    assert [field["name"] for field in loaded.metadata(ORDERS).schema["fields"]][:3] == ["id", "name", "a.b"]
    assert loaded.one(loaded.merged()).status == "already"


def test_two_drivers_at_once(loaded: Lake) -> None:
    staged(loaded, 1000)
    spec = loaded.folder / "spec.json"
    spec.write_text(loaded.merge_spec().model_dump_json())
    argv = [sys.executable, "-m", "tests.integration.materialise.killable", "merge", str(spec)]
    checkout = Path(__file__).resolve().parents[2]
    drivers = [subprocess.Popen(argv, cwd=checkout, env=on_the_jvm(loaded.spark)) for _ in range(2)]
    assert [driver.wait(timeout=200) for driver in drivers] == [0, 0]
    assert exact(loaded, 1000)
    assert applied(loaded) == [number(1, 2000), number(1, 1000)]
    assert list(loaded.metadata(ORDERS).branches) == ["main"]
    assert loaded.one(loaded.merged()).status == "already"


def test_merges_and_maintenance_at_once(loaded: Lake) -> None:
    if loaded.kind != "postgresql" and not IN_SWEEP:
        pytest.skip("only in the long tests")
    spec = MaintainSpec(
        source=SOURCE, generation=GENERATION, staging_root=loaded.staging.store.root, catalog=loaded.catalog, keep_days=0
    )  # fmt: skip
    starts = range(1000, 5000, 1000)
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(lambda: [_merged(loaded, start) for start in starts])
        done = []
        while not going.done():
            done.append(maintain(loaded.spark, spec))
        going.result()
    # Compaction may have been overtaken each time; nothing else may have gone wrong.
    errors = [one.error for result in done for one in result.tables if one.error]
    assert {error["error"] for error in errors} <= {"RetryableError"}, errors
    assert exact(loaded, starts[-1])
    (last,) = maintain(loaded.spark, spec).tables
    assert (last.error, loaded.metadata(ORDERS).applied.seqno) == (None, number(1, 5000))
    assert sum(one.compacted for result in done for one in result.tables) + last.compacted > 0
    assert exact(loaded, starts[-1])
    assert loaded.one(loaded.merged()).status == "already"


def _merged(lake: Lake, start: int) -> None:
    staged(lake, start)
    while lake.merged().exit_code == 3:  # a compaction came first, five times
        pass


def test_many_tables_need_few_connections_of_a_catalog(new_lake: NewLake, postgres: str) -> None:
    lake = new_lake("postgresql")
    query = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = 'postgres'"
    options = {"url": postgres, "user": "postgres", "password": PASSWORD, "query": query}
    reading = lake.spark.read.format("jdbc").options(**options)
    before = reading.load().first().n
    tables = [table(f"t{place}", COLUMNS, ["id"]) for place in range(8)]
    keys = [lake.staging.load(schema, [(1, "x")], position(1, 1000)) for schema in tables]
    assert lake.loaded(*keys).exit_code == 0
    # Of the session that looks around first, and of those that work side by side; Iceberg gives each up to two.
    assert reading.load().first().n - before <= 6
