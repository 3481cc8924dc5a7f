"""Two warehouses with one staging root, or a setting that was changed for a while: records are of one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.materialise.merge.carry_over import carry_over
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.fixture
def other(live: LiveSource, tmp_path: Path) -> LiveSource:
    """The source with another warehouse. Both have its table."""
    live.run("CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
    live.load()
    catalog = live.settings.catalog.model_copy(update={"warehouse": f"{tmp_path}/other"})
    other = replace(live, settings=live.settings.model_copy(update={"catalog": catalog}))
    other.load()
    return other


def test_a_table_that_was_dropped_while_the_other_one_was_merged(live: LiveSource, other: LiveSource) -> None:
    live.run("CREATE TABLE made (id INT PRIMARY KEY)", "INSERT INTO made VALUES (1)", "INSERT INTO kept VALUES (2)")
    assert live.delta().published
    live.run("DROP TABLE made", "INSERT INTO kept VALUES (3)")
    assert other.delta().published
    live.run("INSERT INTO kept VALUES (4)")
    assert live.delta().published
    assert live.warehouse_rows("made") == {}
    assert (live.differences(), live.merge().exit_code) == ([], 0)
    assert other.merge().published
    assert other.differences() == []


def test_a_quiet_interval_is_not_published_for_a_warehouse_that_has_not_the_snapshots(
    live: LiveSource, other: LiveSource
) -> None:
    live.run("INSERT INTO kept VALUES (2)")
    assert live.delta().published
    live.run(f"CREATE DATABASE {live.database}_x", f"DROP DATABASE {live.database}_x")
    other.stage()
    spec: Any = pipeline.materialise_job(other.settings).spec
    assert carry_over(spec) is None
    assert other.merge().published
    assert other.differences() == []
    mine: Any = pipeline.materialise_job(live.settings).spec
    assert carry_over(mine) is None
    assert live.merge().exit_code == 0
