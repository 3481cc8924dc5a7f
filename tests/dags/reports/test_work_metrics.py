"""Counters of the work of tasks, as a receiver of OpenTelemetry gets them from a process like that of a task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from loader.airflow.reports import work_metrics
from loader.errors import DataError
from loader.extract.spec import ExtractResult, TableRows
from loader.materialise.spec import MaterialiseResult, TableResult
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import failed_task
from tests.support.otlp_receiver import receiving

_SEND = """
import json, sys
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
from loader.airflow.reports.work_metrics import send_failure, send_work
from loader.errors import DataError
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)  # as a worker does for a task
for use_case, result in json.loads(sys.argv[1]):
    send_work("my.shop", use_case, result, 1.5)
send_failure("my.shop.delta", DataError("an invalid date", hint="set on_misfit"))
"""
_NAME = "airflow.binlog_loader.my__shop"


def _sent(*work: tuple[str, ExtractResult | MaterialiseResult]) -> dict[str, float]:
    results = json.dumps([(use_case, result.model_dump(mode="json")) for use_case, result in work])
    with receiving() as found:
        subprocess.run([sys.executable, "-c", _SEND, results], check=True, env=os.environ | found.settings)
        return {name: value for name, value in found.counters.items() if "binlog_loader" in name}


def _extracted(status: str, rows: Sequence[TableRows]) -> ExtractResult:
    place = {"start": "binlog.000001:4", "stop": "binlog.000001:100", "start_seqno": 4, "stop_seqno": 100}
    return ExtractResult(status=status, tables=tuple(rows), bytes=96, events=3, **place)


def test_rows_are_counted_by_table_and_operation_where_they_were_staged_and_applied() -> None:
    rows = TableRows(table="shop.a", inserts=3, updates=2, bytes=70), TableRows(table="shop.b", deletes=1)
    applied = TableResult(table="shop.a", status="applied", inserts=3, updates=2, bytes=70, seconds=0.5)
    quarantined = TableResult(table="shop.b", status="quarantined", deletes=1)
    merged = MaterialiseResult(tables=(applied, quarantined), stop="binlog.000001:100")
    work = (("extract", _extracted("staged", rows)), ("extract", _extracted("already", rows)), ("materialise", merged))
    assert _sent(*work) == {
        f"{_NAME}.extract.rows{{operation=insert,table=shop.a}}": 3,
        f"{_NAME}.extract.rows{{operation=update,table=shop.a}}": 2,
        f"{_NAME}.extract.rows{{operation=delete,table=shop.b}}": 1,
        f"{_NAME}.extract.staged_bytes{{table=shop.a}}": 70,
        f"{_NAME}.extract.bytes": 96,
        f"{_NAME}.materialise.rows{{operation=insert,table=shop.a}}": 3,
        f"{_NAME}.materialise.rows{{operation=update,table=shop.a}}": 2,
        f"{_NAME}.materialise.staged_bytes{{table=shop.a}}": 70,
        "airflow.binlog_loader.my.shop.delta.failures.dataerror": 1,
    }


def test_a_failed_task_is_counted(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    client = SimpleNamespace(incr=sent.append, timing=lambda *_, **__: None)
    monkeypatch.setattr(work_metrics, "stats_client", lambda: client)
    spark_submit_program.result = {"error": DataError("an invalid date", hint="set on_misfit").as_dict()}
    failed_task("materialise", site, running)
    assert sent == ["binlog_loader.shop.delta.failures.DataError"]
