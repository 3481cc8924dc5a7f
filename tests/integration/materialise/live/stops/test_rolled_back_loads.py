"""Tables that somebody rolls back or drops in the warehouse, to before an initial load that had more than the log."""

from __future__ import annotations

import pytest

from loader import pipeline
from loader.errors import DataError, RetryableError
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.merge.merge_planner import MergePlanner
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.reports.table_progress import has_position
from tests.integration.materialise.live_source import LiveSource, live

__all__ = ["live"]
pytestmark = pytest.mark.integration
WHAT = "the table is at a position before its newest initial load"


def test_a_rollback_to_before_a_load(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    live.load()
    name = TableName(live.database, "t")
    metadata = Warehouse(live.spark, live.settings.catalog).metadata(name)
    assert metadata is not None
    loaded = load_unlogged_row(live)
    assert has_position(live.settings, name, loaded)
    write(
        live, f"CALL `{live.settings.catalog.name}`.system.rollback_to_snapshot('{live.database}.t', {metadata.head})"
    )
    live.run("INSERT INTO t VALUES (4)")
    assert outcome(live) == ("quarantined", WHAT)
    with pytest.raises(DataError, match="the table is quarantined"):
        has_position(live.settings, name, loaded)
    live.load_again("t")
    assert has_position(live.settings, name, loaded)
    assert outcome(live) == ("already", "")
    assert live.differences() == []


def test_a_table_that_was_dropped_in_the_warehouse_while_it_was_behind(live: LiveSource) -> None:
    """The log created the table. So it would be built again from there."""
    live.run("CREATE TABLE other (id INT PRIMARY KEY)")
    live.load()
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    live.delta()
    load_unlogged_row(live)
    pipeline.pause(live.settings, [f"{live.database}.t"], "ada", "look at it")
    live.run("INSERT INTO t VALUES (4)")
    live.delta()
    write(live, f"DROP TABLE `{live.settings.catalog.name}`.{live.database}.t")
    pipeline.resume(live.settings, [f"{live.database}.t"])
    assert outcome(live) == ("quarantined", WHAT)
    live.run("DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (5)")
    assert outcome(live) == ("applied", "")  # no row of the load is left
    assert live.differences() == []


def test_a_load_that_is_committed_while_a_merge_is_planned(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    live.load()
    warehouse, name = Warehouse(live.spark, live.settings.catalog), TableName(live.database, "t")
    earlier = warehouse.metadata(name)
    load_unlogged_row(live)
    plans = chain_of(live.settings)
    chain = Chain(plans.store, plans.source, plans.require_generation().name)
    record = chain.newest_published()
    assert record is not None
    with pytest.raises(RetryableError, match="the table was loaded while its merge was planned"):
        MergePlanner(warehouse, chain, record).plan(name, earlier, record.stop_seqno)


def load_unlogged_row(live: LiveSource) -> str:
    """Load the table again with a row that the log does not have. Return the position of the load."""
    live.run("SET SESSION sql_log_bin = 0", "INSERT INTO t VALUES (2)")
    live.run("INSERT INTO t VALUES (3)")
    (loaded,) = live.load_again("t").tables
    live.delta()
    assert live.differences() == []
    return loaded.position


def write(live: LiveSource, statement: str) -> None:
    """Run a statement of another tool in the warehouse."""
    Warehouse(live.spark, live.settings.catalog).session.sql(statement)


def outcome(live: LiveSource) -> tuple[str, str]:
    """Return the status of the table after a delta, and its error."""
    (found,) = (one for one in live.delta().tables if one.table == f"{live.database}.t")
    return found.status, found.error["what"] if found.error else ""
