"""Two warehouses with one staging root, or a setting that was changed: a record is of one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.materialise.merge.carry_over import carry_over
from loader.materialise.spec import MaterialiseResult
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
