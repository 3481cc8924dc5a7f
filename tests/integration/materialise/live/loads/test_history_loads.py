"""A table that becomes a history after it was read in chunks, while others changed it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from loader import pipeline
from loader.initial_load.run import find_staged_loads
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.load.load_run import load
from loader.materialise.rules import TableRule
from loader.model.table import TableName
from tests.integration.materialise.live_source import LiveSource, live
from tests.support.planned_loads import change_after_plan

__all__ = ["live"]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_no_change_is_in_the_history_twice(live: LiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")

    with monkeypatch.context() as patched:
        change_after_plan(patched, lambda: live.run("INSERT INTO a VALUES (2)"))
        live.load()
    live.delta()
    warehouse = Warehouse(live.spark, live.settings.catalog)
    warehouse.session.sql(f"DROP TABLE {warehouse.name(TableName(live.database, 'a'))} PURGE")
    rule = TableRule(tables=(f"{live.database}.a",), mode="history")
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.run("INSERT INTO a VALUES (3)")
    assert live.statuses(live.delta()) == {"a": "quarantined"}
    staged = find_staged_loads(cast("Any", pipeline.read_tables_job(live.settings).spec))
    assert staged
    (refused,) = load(live.spark, cast("Any", pipeline.load_tables_job(live.settings, staged.manifests).spec)).tables
    assert refused.error
    assert refused.error["what"] == "the initial load was read in chunks, and the table is a history"
    assert live.statuses(live.load_again("a")) == {"a": "applied"}
    live.run("INSERT INTO a VALUES (4)")
    live.delta()
    rows = live.warehouse_rows("a")
    assert rows
    assert sum(rows.values()) == 4
