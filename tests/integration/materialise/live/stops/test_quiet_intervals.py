"""Intervals without changes repeat the snapshots of the newest record, unless something else changed a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from loader import pipeline
from loader.initial_load.run import stage_tables
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.jobs.replay_job import replay
from loader.materialise.load.adoption import adopt
from loader.materialise.load.load_run import load
from loader.materialise.merge import source_run
from loader.materialise.merge.carry_over import carry_over
from loader.model.table import TableName
from loader.pipeline import pause, purge, resume
from loader.pipeline.reports.source_status import status
from loader.spark.workers import Threads
from loader.staging.documents import TableFilter
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


def quiet_run(live: LiveSource) -> bool:
    """Stage log without changes of captured tables, and merge it as Airflow does. Return whether no table was read."""
    live.run("CREATE DATABASE IF NOT EXISTS other_db", "CREATE TABLE other_db.x (i INT)", "DROP DATABASE other_db")
    live.stage()
    if carry_over(cast("Any", pipeline.materialise_job(live.settings).spec)) is not None:
        return True
    live.merge()
    return False


def in_warehouse(live: LiveSource, statement: str, table: str = "t") -> list[Any]:
    """Run a statement of Spark, as another tool does; `{t}` is the table."""
    warehouse = Warehouse(live.spark, live.settings.catalog)
    name = warehouse.name(TableName(live.database, table))
    return warehouse.session.sql(statement.format(t=name)).collect()


def in_view(live: LiveSource) -> list[tuple[int, int]] | None:
    """Return the rows of the table in the newest consistent view; None if it does not have the table."""
    queries = [one.query for one in pipeline.view(live.settings).tables if one.table.endswith(".t")]
    return sorted((row.id, row.v) for row in in_warehouse(live, queries[0])) if queries else None


def viewed(live: LiveSource) -> list[tuple[int, int]]:
    """Return the rows of the table in the newest consistent view, which has the table."""
    rows = in_view(live)
    assert rows is not None
    return rows


def adopted(live: LiveSource, place: str) -> None:
    """Adopt the table as of a place."""
    adoption = pipeline.plan_adoption(live.settings, (f"{live.database}.t",), place)
    spec: Any = pipeline.adopt_job(live.settings, adoption.plans, adoption.exact_at).spec
    result = adopt(live.spark, spec)
    assert result.exit_code == 0, result
    pipeline.record_adoption(live.settings, adoption, result.model_dump(mode="json"))


@pytest.mark.sweep
def test_nothing_else_happened(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    live.load()
    live.run("INSERT INTO t VALUES (1, 1)")
    live.delta()
    assert quiet_run(live)
    assert viewed(live) == [(1, 1)]


def test_an_interval_was_planned_without_a_table(live: LiveSource) -> None:
    """The configuration left it out by mistake, and the run ended before it merged."""
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 1)")
    live.load()
    live.run("INSERT INTO t VALUES (3, 3)")
    live.delta()
    everything = live.settings
    some = TableFilter(include=everything.tables.include, exclude=(f"{live.database}.t",))
    live.settings = everything.model_copy(update={"tables": some})
    live.run("UPDATE t SET v = 7 WHERE id = 1", "DELETE FROM t WHERE id = 2")
    live.stage()
    live.settings = everything
    assert not quiet_run(live)
    live.run("INSERT INTO t VALUES (9, 9)")
    (result,) = live.delta().tables
    assert result.error
    assert (result.status, result.error["what"]) == ("quarantined", "the table was not captured all the time")
    live.load_again("t")
    assert live.differences() == []


def test_a_table_was_adopted_at_an_earlier_place(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
    live.load()
    live.run("INSERT INTO t VALUES (2, 2)")
    live.delta()
    place = status(live.settings).log_end
    live.run("INSERT INTO t VALUES (3, 3)")
    live.delta()
    in_warehouse(live, "DROP TABLE {t}")
    in_warehouse(live, "CREATE TABLE {t} (id INT, v INT) USING iceberg")
    in_warehouse(live, "INSERT INTO {t} VALUES (1, 1), (2, 2)")
    adopted(live, str(place))
    live.merge()  # without more log
    assert live.differences() == []
    assert not quiet_run(live)
    assert quiet_run(live)
    assert viewed(live) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.sweep
def test_a_table_was_corrected_by_a_replay(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u LIKE t")
    live.load()
    live.run("INSERT INTO t VALUES (1, 1)")
    live.delta()
    in_warehouse(live, "UPDATE {t} SET v = 99")
    live.run("INSERT INTO t VALUES (2, 2)")
    live.delta()  # its snapshot has the damage
    replayed(live)
    assert not quiet_run(live)
    assert viewed(live) == [(1, 1), (2, 2)]
    assert quiet_run(live)
    assert viewed(live) == [(1, 1), (2, 2)]


def replayed(live: LiveSource) -> None:
    """Correct the table by a replay of the whole log."""
    start = pipeline.find_replay_start(live.settings, "begin")
    result = replay(live.spark, cast("Any", pipeline.replay_job(live.settings, start.seqno, (), publish=True).spec))
    assert result.exit_code == 0, result


def loaded_again(live: LiveSource) -> None:
    live.run("CREATE DATABASE IF NOT EXISTS other_db", "DROP DATABASE other_db")  # a load needs log after the record
    live.load_again("t")


@pytest.mark.sweep
@pytest.mark.parametrize("repair", [replayed, loaded_again])
@pytest.mark.parametrize("point", ["run_all", "publish"])
def test_a_table_was_repaired_while_a_delta_merged_others(
    live: LiveSource,
    monkeypatch: pytest.MonkeyPatch,
    repair: Callable[[LiveSource], None],
    point: str,
) -> None:
    """The delta has looked at the table before. It looks again, unless it is about to publish."""
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u LIKE t")
    live.load()
    live.run("INSERT INTO t VALUES (1, 1), (2, 2)")
    live.delta()
    in_warehouse(live, "UPDATE {t} SET v = 99")
    live.run("INSERT INTO u VALUES (1, 1)")
    original, left = getattr(source_run, point), [repair]

    def repaired_first(*arguments: Any) -> Any:
        if left:
            left.pop()(live)
        return original(*arguments)

    monkeypatch.setattr(source_run, point, repaired_first)
    assert live.delta().exit_code == 0
    assert live.differences() == []
    if point == "run_all":  # the load is past the stop of the delta
        assert in_view(live) == ([(1, 1), (2, 2)] if repair is replayed else None)
    assert not quiet_run(live)
    assert viewed(live) == [(1, 1), (2, 2)]
    assert quiet_run(live)
    assert viewed(live) == [(1, 1), (2, 2)]


@pytest.mark.sweep
def test_a_table_was_loaded_again_after_a_skip(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", "CREATE TABLE u LIKE t")
    live.load()
    place = status(live.settings).log_end
    live.run("UPDATE t SET v = 2")
    pipeline.skip_transaction(live.settings, str(place), (), reason="a test", by="ann")
    live.run("INSERT INTO u VALUES (1, 1)")
    live.delta()
    assert live.differences() == ["t"]
    loaded_again(live)
    assert not quiet_run(live)
    assert viewed(live) == [(1, 2)]


@pytest.mark.sweep
def test_a_table_was_paused_while_its_load_was_read(live: LiveSource) -> None:
    """The load sets it back behind the place that the record has for it. Purge keeps what it needs."""
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", "CREATE TABLE u LIKE t")
    live.load()
    live.run("INSERT INTO t VALUES (2, 2)")
    live.delta()
    name = f"{live.database}.t"
    read = stage_tables(Threads(2), cast("Any", pipeline.read_tables_job(live.settings, (name,), again=True).spec))
    live.run("INSERT INTO t VALUES (3, 3)")
    live.delta()  # past the position of the load
    pause(live.settings, (name,), "ann", "a test")
    live.run("INSERT INTO t VALUES (4, 4)")
    live.delta()
    load(live.spark, cast("Any", pipeline.load_tables_job(live.settings, read.manifests).spec))
    live.merge()
    assert not quiet_run(live)
    purge(live.settings, timedelta(0))
    resume(live.settings, (name,))
    live.run("INSERT INTO u VALUES (1, 1)")
    live.delta()
    assert live.differences() == []


@pytest.mark.sweep
def test_the_files_of_an_adopted_table_are_purged(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)", "CREATE TABLE u LIKE t")
    live.load("u")
    place = status(live.settings).log_end
    in_warehouse(live, "CREATE TABLE {t} (id INT, v INT) USING iceberg")
    in_warehouse(live, "INSERT INTO {t} VALUES (1, 1)")
    adopted(live, str(place))
    for number in (2, 3):
        live.run(f"INSERT INTO t VALUES ({number}, 1)", f"INSERT INTO u VALUES ({number}, 1)")
        live.delta()
    assert live.differences() == []
    removed = purge(live.settings, timedelta(0))
    assert sum(one.files for one in removed if one.what == "interval") == 4
