"""A run killed at any point, as by a power cut, and run again: exactly the fold, once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from loader.errors import RetryableError
from loader.materialise.jobs import materialise_job
from loader.materialise.spec import LoadSpec, MaterialiseSpec
from loader.model.table import Column
from loader.spark.settings import SparkSettings
from loader.spark.submit import run
from tests.integration.materialise.killable import run_until
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import Change, fold, number, position, table
from tests.support.catalogs import CATALOGS
from tests.support.spark import NewLake
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

SCHEMA = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
P0 = position(1, 1000)
ROWS = [(key, f"row {key}") for key in range(20)]
FIRST = [Change("U", number(1, 1100), key, (key, "first")) for key in range(0, 30, 3)]
SECOND = [Change("D", number(1, 2100), key, (key, "")) for key in range(0, 30, 2)] + [
    Change("I", number(1, 2200), key, (key, "again")) for key in range(0, 30, 4)
]
MERGE_POINTS = [
    "table.before",
    "branch.after",
    "delete.after",
    "insert.after",
    "publish.before",
    "publish.after",
    "published.before",
    "published.after",
]


# What a catalog decides is only whether a commit happened; the other points differ in what is on disk.
_DECIDED = {"sqlite": [], "postgresql": ["publish.before", "publish.after"]}
CASES = [
    (kind, point) for kind in CATALOGS for point in (MERGE_POINTS if kind == "hadoop" or IN_SWEEP else _DECIDED[kind])
]


def staged(lake: Lake) -> str:
    lake.staging.interval(P0, position(1, 2000), [(SCHEMA, FIRST)])
    lake.staging.interval(position(1, 2000), position(1, 3000), [(SCHEMA, SECOND)])
    return lake.staging.load(SCHEMA, ROWS, P0)


def killed(lake: Lake, spec: MaterialiseSpec | LoadSpec, point: str) -> None:
    assert run_until(lake.spark, point, spec, lake.folder) == -signal.SIGKILL


@pytest.mark.parametrize(("kind", "point"), CASES)
def test_a_merge_killed_anywhere_heals(new_lake: NewLake, kind: str, point: str) -> None:
    lake = new_lake(kind)
    key = staged(lake)
    lake.one(lake.loaded(key))
    killed(lake, lake.merge_spec(), point)
    through = point in {"publish.after", "published.before", "published.after"}
    before = lake.rows(SCHEMA)
    assert before == fold(SCHEMA, ROWS, 0, FIRST + SECOND if through else [])
    head = lake.metadata(SCHEMA).head
    again = lake.merged()
    assert lake.one(again).status == ("already" if through else "applied")
    assert (lake.metadata(SCHEMA).head == head) is through
    assert lake.rows(SCHEMA) == fold(SCHEMA, ROWS, 0, FIRST + SECOND)
    assert again.published
    assert lake.staging.store.get(again.published)
    assert lake.merged().tables[0].snapshot == lake.metadata(SCHEMA).head


@pytest.mark.parametrize("point", ["insert.after", "publish.before", "publish.after"])
def test_a_load_killed_anywhere_heals(lake: Lake, point: str) -> None:
    key = staged(lake)
    killed(lake, lake.load_spec([key]), point)
    assert lake.rows(SCHEMA) == ({(row[0],): row for row in ROWS} if point == "publish.after" else {})
    result = lake.one(lake.loaded(key))
    assert result.status == ("already" if point == "publish.after" else "applied")
    assert lake.rows(SCHEMA) == {(row[0],): row for row in ROWS}
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(SCHEMA) == fold(SCHEMA, ROWS, 0, FIRST + SECOND)
    assert list(lake.metadata(SCHEMA).branches) == ["main"]


@pytest.mark.sweep
def test_a_job_of_spark_submit_killed_in_the_middle_heals(lake: Lake, settings: SparkSettings) -> None:
    key = staged(lake)
    lake.one(lake.loaded(key))
    with pytest.raises(RetryableError, match="ended without a result") as caught:
        run(Path(materialise_job.__file__), lake.merge_spec(), settings, {"LOADER_FAILPOINT": "delete.after"})
    assert "exit code 137" in caught.value.why
    assert lake.rows(SCHEMA) == {(row[0],): row for row in ROWS}
    assert lake.one(lake.merged()).status == "applied"
    assert lake.rows(SCHEMA) == fold(SCHEMA, ROWS, 0, FIRST + SECOND)
