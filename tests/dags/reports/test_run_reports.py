"""What a run reports: asset events, its note, and gauges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from airflow.sdk import AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessors

from loader.airflow import tasks
from loader.airflow.reports import metrics
from loader.airflow.reports.asset_events import add_table_events, table_asset, tables_alias
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.reports.run_note import run_note
from loader.airflow.tasks import check_tables
from loader.airflow.versions import AIRFLOW
from loader.errors import DataError
from loader.materialise.spec import MaterialiseResult, TableResult
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import operator_of
from tests.support.otlp_receiver import receiving
from tests.unit.pipeline.test_gauges import LAG

_ORDERS = {"table": "shop.orders", "inserts": 3, "updates": 2, "deletes": 1}
_INTERVAL = {"start": "binlog.000001:4", "stop": "binlog.000001:100", "tables": [_ORDERS]}
_EVENT = {
    "source": "shop",
    "start": "binlog.000001:4",
    "stop": "binlog.000001:100",
    "position": "binlog.000001:100",
    "snapshot": "9007199254740993",
    "inserts": 3,
    "updates": 2,
    "deletes": 1,
}


def _events(
    result: dict[str, object], running: Task, tries: int = 1, source: str = "shop"
) -> dict[str, dict[str, object]]:
    alias = tables_alias(source)
    running.outlets = [alias]
    accessors = OutletEventAccessors()
    add_table_events({**running.context, "outlet_events": accessors}, source, "lake", _INTERVAL, result, tries)
    events = accessors[alias].asset_alias_events
    assert {event.source_alias_name for event in events} <= {alias.name}
    return {event.dest_asset_key.name: event.extra for event in events}


def _result(status: str, **more: object) -> dict[str, object]:
    table = TableResult(table="shop.orders", status=status, snapshot=9007199254740993, **more)
    quiet = TableResult(table="shop.quiet", status="unchanged" if status == "applied" else "already", snapshot=5)
    return MaterialiseResult(tables=(table, quiet), stop="binlog.000001:100").model_dump(mode="json")


def test_a_table_that_was_committed_to_has_an_event(running: Task) -> None:
    applied = _result("applied", inserts=3, updates=2, deletes=1, position="binlog.000001:100")
    assert _events(applied, running) == {"lake.shop.orders": _EVENT}
    json.dumps(_EVENT)


def test_a_second_try_repeats_the_events_of_the_first(running: Task) -> None:
    """The worker of the first try may have died after its commit."""
    assert _events(_result("already"), running) == {}
    assert _events(_result("already"), running, tries=2) == {"lake.shop.orders": _EVENT}
    assert _events(_result("failed"), running, tries=2) == {}


def test_an_event_names_its_source_whatever_the_outlets_are(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    spark_submit_program.result = _result("applied")
    operator = operator_of("materialise", site, **_INTERVAL)
    operator.outlets = running.outlets = [AssetAlias("marts"), tables_alias("shop")]
    accessors = OutletEventAccessors()
    operator.execute({**running.context, "outlet_events": accessors})
    (event,) = accessors[tables_alias("shop")].asset_alias_events
    assert event.extra["source"] == "shop"


def test_an_event_names_a_source_with_other_characters_as_the_configuration_does(running: Task) -> None:
    (event,) = _events(_result("applied"), running, source="web shop").values()
    assert event["source"] == "web shop"


def test_an_asset_has_a_name_that_every_database_of_airflow_takes() -> None:
    asset = table_asset("lake", "`a.b`.größe x")
    assert (asset.name, asset.uri) == ("lake.a.b.gr%C3%B6%C3%9Fe%20x", "iceberg://lake/a.b/gr%C3%B6%C3%9Fe%20x")


def test_an_operator_without_the_alias_has_no_events(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    spark_submit_program.result = _result("applied")
    operator = operator_of("materialise", site, **_INTERVAL)
    assert operator.execute(running.context) == spark_submit_program.result
    operator.outlets = running.outlets = [tables_alias("shop")]
    accessors = OutletEventAccessors()
    operator.execute({**running.context, "outlet_events": accessors})
    assert len(accessors[tables_alias("shop")].asset_alias_events) == 1


def test_the_note_of_a_run() -> None:
    merged = _result("applied", inserts=1200, updates=2, deletes=1)
    lag = LAG.model_copy(update={"quarantined": (), "released": ("a.b",), "postponed": ()})
    assert run_note([_INTERVAL, merged], lag) == (
        "binlog.000001:4 to binlog.000001:100; 1,200 inserted, 2 updated, 1 deleted in 1 tables;"
        " 62 s and 5,000,000,000 bytes behind the server; 1 tables behind: a.b"
    )
    many = lag.model_copy(update={"released": tuple(f"a.t{number}" for number in range(7)), "lag_seconds": None})
    assert run_note([], many).endswith("unknown time and 5,000,000,000 bytes behind the server; 7 tables behind: "
                                       "a.t0, a.t1, a.t2, a.t3, a.t4, and 2 more")  # fmt: skip
    assert run_note([], LAG).endswith("2 tables behind: shop.a\nb, shop.c; 2 tables postponed: shop.d, shop.e")
    assert run_note([], None) == "0 inserted, 0 updated, 0 deleted in 0 tables; lag unknown"


def test_a_run_that_fails_has_a_note_and_gauges(site: Site, running: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, float] = {}
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    monkeypatch.setattr(metrics, "stats_client", lambda: SimpleNamespace(gauge=sent.__setitem__))
    site.quarantine("shop.items")
    error = DataError("an invalid date", hint="set on_misfit", table="shop.items").as_dict()
    with pytest.raises(TaskFailed):
        check_tables.function("shop", [{"tables": [{"table": "shop.items", "status": "quarantined", "error": error}]}])
    # The server of this site is down.
    assert running.xcoms["note"] == (
        "0 inserted, 0 updated, 0 deleted in 0 tables; unknown time and unknown bytes behind the server;"
        " 1 tables behind: shop.items"
    )
    assert sent == {
        "binlog_loader.shop.up": 1,
        "binlog_loader.shop.server_up": 0,
        "binlog_loader.shop.staged_intervals": 0,
        "binlog_loader.shop.quarantined_tables": 1,
        "binlog_loader.shop.tables_behind": 1,
        "binlog_loader.shop.paused_tables": 0,
    }


_INITIALIZE = """
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)  # as a worker does for a task
"""
if AIRFLOW == (3, 2):
    _INITIALIZE = """
from airflow.sdk.observability.metrics import stats_utils
from airflow.sdk.observability.stats import Stats
Stats.initialize(factory=stats_utils.get_stats_factory(Stats))
"""
_MEASURE = f"""{_INITIALIZE if AIRFLOW >= (3, 2) else ""}
from loader.airflow.reports.metrics import report_lag
from loader.airflow.sources import settings_of
assert report_lag(settings_of("shop"))
"""


@pytest.mark.skipif(
    AIRFLOW < (3, 2), reason="this version of Airflow does not take the collector from OpenTelemetry's variables"
)
def test_opentelemetry_gets_the_gauges_before_the_process_of_a_task_ends(site: Site) -> None:
    site.quarantine("shop.items")
    with receiving() as found:
        subprocess.run([sys.executable, "-c", _MEASURE], check=True, env=os.environ | found.settings)
        sent = {name: value for name, value in found.gauges.items() if "binlog_loader" in name}
    assert sent == {
        "airflow.binlog_loader.shop.up": 1,
        "airflow.binlog_loader.shop.server_up": 0,  # the server of this site is down
        "airflow.binlog_loader.shop.staged_intervals": 0,
        "airflow.binlog_loader.shop.quarantined_tables": 1,
        "airflow.binlog_loader.shop.tables_behind": 1,
        "airflow.binlog_loader.shop.paused_tables": 0,
    }


def test_a_source_that_cannot_be_read_does_not_fail_the_run(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (site.folder / "staging" / "shop" / "0001" / "generation.json").unlink()
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    check_tables.function("shop", [])
    assert running.xcoms["note"].endswith("lag unknown")
    assert "the lag is not known: nothing was loaded from this source yet" in caplog.text
