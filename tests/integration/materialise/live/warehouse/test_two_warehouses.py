"""Two warehouses with one staging root, or a setting that was changed: a record is of one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.errors import DataError
from loader.materialise.merge.carry_over import carry_over
from loader.materialise.spec import MaterialiseResult
from loader.pipeline.reports.source_status import status
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def other(live: LiveSource, tmp_path: Path) -> LiveSource:
    """The source with another warehouse. Both have its table."""
    live.run("CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
    live.load()
    other = with_warehouse(live, f"{tmp_path}/other")
    other.load()
    return other


def carried_over(source: LiveSource) -> MaterialiseResult | None:
    spec: Any = pipeline.materialise_job(source.settings).spec
    return carry_over(spec)


def test_a_quiet_interval_is_not_published_for_a_warehouse_that_has_not_the_snapshots(
    live: LiveSource, other: LiveSource
) -> None:
    live.run("INSERT INTO kept VALUES (2)")
    assert live.delta().published
    live.run(f"CREATE DATABASE {live.database}_x", f"DROP DATABASE {live.database}_x")
    other.stage()
    assert carried_over(other) is None
    assert other.merge().published
    assert other.differences() == []
    live.run(f"CREATE DATABASE {live.database}_x", f"DROP DATABASE {live.database}_x")
    live.stage()
    assert carried_over(live) is None
    assert carried_over(other) is not None


def test_the_status_of_a_warehouse_is_not_that_of_another(live: LiveSource, tmp_path: Path) -> None:
    live.run("CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
    live.load()
    live.run("INSERT INTO kept VALUES (2)")
    live.delta()
    empty = with_warehouse(live, f"{tmp_path}/empty")
    state = status(empty.settings)
    assert (state.tables, state.staged_intervals, state.rows) == ((), 1, {})
    assert state.behind
    with pytest.raises(DataError, match="no consistent view"):
        pipeline.view(empty.settings)
    assert [table.exact for table in status(live.settings).tables] == [True]


def test_a_table_that_only_another_warehouse_has_is_named(live: LiveSource, other: LiveSource) -> None:
    live.run("INSERT INTO kept VALUES (2)")
    other.delta()
    live.run("SET SESSION sql_log_bin = 0", "CREATE TABLE more (id INT PRIMARY KEY)")
    live.load("more")
    listed = pipeline.list_tables(other.settings)
    other.delta()
    assert [one.table for one in pipeline.find_unloaded(other.settings, listed)] == [f"{live.database}.more"]


def test_a_load_into_another_warehouse_brings_no_skipped_rows(live: LiveSource, other: LiveSource) -> None:
    place = status(live.settings).log_end
    live.run("INSERT INTO kept VALUES (2)")
    pipeline.skip_transaction(live.settings, place, (), reason="poison", by="ann")
    live.run("INSERT INTO kept VALUES (3)")
    live.delta()
    other.merge()
    live.run("INSERT INTO kept VALUES (4)")
    live.load_again("kept")
    other.delta()
    assert [(table.skipped_at, table.exact) for table in status(other.settings).tables] == [(place, False)]
    live.run("INSERT INTO kept VALUES (5)")
    live.delta()
    assert [(table.skipped_at, table.exact) for table in status(live.settings).tables] == [("", True)]
    assert (live.differences(), other.differences()) == ([], ["kept"])


def with_warehouse(live: LiveSource, folder: str) -> LiveSource:
    """The source with another warehouse."""
    catalog = live.settings.catalog.model_copy(update={"warehouse": folder})
    return replace(live, settings=live.settings.model_copy(update={"catalog": catalog}))
