"""The task `materialise` also loads new tables. It names the tables that a person must load."""

from __future__ import annotations

from typing import Any

import pytest

from loader import pipeline
from loader.airflow.reports.run_note import run_note
from loader.airflow.stages.materialise_operator import MaterialiseOperator
from loader.errors import DataError
from loader.materialise.spec import TableResult
from loader.pipeline import ListedTables, UnloadedTable
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import publish

LISTED = ListedTables(generation="0001", position="binlog.000001:90", tables=("shop.new",))
REFUSED = DataError("a table of engine X is not supported", hint="exclude it", table="shop.bad").as_dict()


def operator(site: Site) -> MaterialiseOperator:
    staged: Any = site.interval
    interval: Any = {**site.interval, "listed": LISTED.model_dump(mode="json")}
    return MaterialiseOperator(task_id="materialise", source="", staged=staged, interval=interval, fail_on_tables=False)


def unloaded(monkeypatch: pytest.MonkeyPatch, *found: UnloadedTable) -> None:
    def find(_: object, listed: ListedTables | None) -> tuple[UnloadedTable, ...]:
        assert listed == LISTED
        return found

    monkeypatch.setattr(pipeline, "find_unloaded", find)


def test_new_tables_are_loaded_after_the_merges(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.stage()
    publish(site, site.plan.stop, behind={"shop.new": 0})
    site.quarantine("shop.new")
    loaded = TableResult(table="shop.new", status="applied", inserts=5).model_dump(mode="json")
    spark_submit_program.result = {"read": {"tables": []}, "load": {"tables": [loaded]}}
    unloaded(
        monkeypatch,
        UnloadedTable(table="shop.new", action="load", bytes=100),
        UnloadedTable(table="shop.bad", action="refused", bytes=100, error=REFUSED),
        UnloadedTable(table="shop.big", action="ask", bytes=5_000_000_000),
    )
    task = operator(site)
    result = task.execute(running.context)
    assert spark_submit_program.spec["read"]["only"] == ["shop.new"]
    assert {table["table"]: table["status"] for table in result["tables"]} == {
        "shop.bad": "failed", "shop.new": "applied", "shop.orders": "already",
    }  # fmt: skip
    assert result["unloaded"] == ["shop.bad", "shop.big"]
    assert run_note([result], None).endswith("lag unknown; 2 tables not loaded: shop.bad, shop.big")
    assert (task.use_case, task.arguments) == ("materialise", site.interval)


def test_without_a_new_table_no_spark_starts(
    site: Site,
    spark_submit_program: SparkSubmit,
    running: Task,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.stage()
    publish(site, site.plan.stop)
    unloaded(monkeypatch)
    assert "unloaded" not in operator(site).execute(running.context)
    unloaded(monkeypatch, UnloadedTable(table="shop.a b", action="ask", bytes=5_000_000_000))
    with caplog.at_level("WARNING"):
        assert operator(site).execute(running.context)["unloaded"] == ["shop.a b"]
    assert (
        "shop.a b is captured and not loaded (about 5,000.0 MB); to load it: loader initial-load --table 'shop.a b'"
        in caplog.text
    )
    assert spark_submit_program.argv is None
