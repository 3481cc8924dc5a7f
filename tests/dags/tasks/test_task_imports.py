"""What a task imports while it runs: every start of a task pays for it. A task without Spark work imports no Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from loader.staging.notes.skips import RowCounts, SkipRecord, Skips
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.conftest import StartServer
from tests.dags.conftest import Site
from tests.dags.operators import publish
from tests.support.airflow_waits import TaskWaits

_HEAVY = ("pyspark", "py4j", "boto3", "botocore", "pandas", "pyarrow", "numba", "loader.materialise.iceberg.warehouse")
_DRIVERS = ("numpy", "pymysql", "loader.pipeline")
"""Tasks that only read their form do without these."""
_RUN = """
import json, sys
from types import SimpleNamespace

from airflow.providers.standard.operators import hitl

hitl.upsert_hitl_detail = lambda **_: None  # asks the supervisor of the task otherwise
names, cases = json.loads(sys.argv[1])
from loader.airflow.dags.source_dags import source_dags

dags, found = source_dags("shop"), {}
for task_id, dag_id, form, given in cases:
    task = dags[dag_id].get_task(task_id)
    ti = SimpleNamespace(
        id=1, dag_id=dag_id, run_id="manual__1", task_id=task_id, map_index=-1, try_number=1, run_type="manual",
        logical_date=None, conf={}, triggering_user_name="ada", xcom_push=lambda key, value: None,
        xcom_pull=lambda task_ids, key: None,
    )
    context = {"ti": ti, "task_instance": ti, "dag_run": ti, "dag": task.dag, "task": task, "params": form, "outlet_events": {}}
    end = "success"
    try:
        if run := getattr(task, "python_callable", None):
            sys.modules[run.__module__].get_current_context = lambda: context
            run(**given)
        else:
            vars(task).update(given)
            task.execute(context)
    except BaseException as error:  # TaskFailed and TaskAwaitingInput are no errors for Python
        end = f"{type(error).__name__}: {error}"
    found[task_id] = [end, sorted(name for name in names if name in sys.modules)]
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Case:
    """A task, the fields of its form, and its arguments."""

    task: str
    dag: str = "shop.repair"
    form: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=lambda: {"source": "shop"})


_RUNWAY = {"start": "binlog.000001:4", "runway": {"file": "binlog.000001", "hours": 40.0, "rule": "age"}}
_TABLE = "CREATE TABLE t (id INT PRIMARY KEY)"
_SCHEMA = {"tables": ["shop.t"], "position": "binlog.000001:200", "definition": _TABLE}
_QUARANTINED = {"tables": ["shop.orders"]}
CASES = (
    Case("choose_repair", form={"action": "release", **_QUARANTINED}, given={}),
    Case("pause", form={**_QUARANTINED, "reason": "a migration"}),
    Case("resume", form=_QUARANTINED),
    Case("release", form=_QUARANTINED),
    Case("set_schema", form=_SCHEMA),
    Case("check_tables", "shop.delta", given={"source": "shop", "results": []}),
    Case("check_runway", "shop.delta", given={"source": "shop", "interval": _RUNWAY}),
    Case("purge", "shop.maintain"),
)


@dataclass(frozen=True)
class Outcome:
    """How a task ended, and the modules that were imported then."""

    end: str
    modules: set[str]


def imported(folder: Path, *cases: Case) -> dict[str, Outcome]:
    """Run tasks one after the other in one process. Return what became of each task."""
    tasks = [[case.task, case.dag, case.form, case.given] for case in cases]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps([[*_HEAVY, *_DRIVERS], tasks])],
        env=os.environ | {"AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.keys() == {case.task for case in cases}
    return {task: Outcome(end, set(names)) for task, (end, names) in found.items()}


def ends(found: dict[str, Outcome]) -> dict[str, str]:
    return {task: outcome.end for task, outcome in found.items()}


def heavy(found: dict[str, Outcome]) -> dict[str, set[str]]:
    return {task: outcome.modules & set(_HEAVY) for task, outcome in found.items()}


def test_tasks_without_spark_work_import_no_spark(site: Site, tmp_path: Path) -> None:
    site.stage()
    publish(site, site.plan.stop)
    site.quarantine("shop.orders")
    Skips(site.chain.store, "shop").keep(skip_of(site))
    staged = Case("extract", "shop.delta", given={"arguments": site.interval, "now": False})
    applied = {"arguments": site.interval, "interval": {"listed": None}, "now": False}
    withdrawn = Case("withdraw_skip", form={"transaction": site.plan.stop, "tables": ["shop.a"], "reason": "wrong one"})
    found = imported(tmp_path, *CASES, staged, Case("materialise", "shop.delta", given=applied), withdrawn)
    assert ends(found) == dict.fromkeys(found, "success")
    assert found["choose_repair"].modules == set()
    assert heavy(found) == {task: set() for task in found}


def skip_of(site: Site) -> SkipRecord:
    """A skip that no plan has."""
    return SkipRecord(
        source="shop",
        generation=site.plan.generation,
        start=site.plan.stop,
        seqno=site.plan.stop_seqno + 100,
        table="shop.a",
        rows=(RowCounts(table="shop.a", events=1),),
        reason="bad",
        by="bob",
        since=datetime.now(UTC),
    )


@pytest.mark.integration
def test_tasks_that_read_the_server_import_no_spark(
    fresh_server: StartServer, airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fresh_server()
    with connected(ServerAddress(host=server.host, port=server.port, user="root")) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("CREATE TABLE shop.t (id INT PRIMARY KEY)")
        cursor.execute("SHOW BINARY LOG STATUS")
        file, offset, *_ = cursor.fetchone() or ()
        begun = f"{file}:{offset}"
        cursor.execute("INSERT INTO shop.t VALUES (1)")
    config = tmp_path / "loader.toml"
    config.write_text(f"""
        [staging]
        root = "file://{tmp_path}/staging"
        [warehouse]
        path = "{tmp_path}/warehouse"
        [spark]
        jars = "{tmp_path}/none"
        [sources.shop]
        host = "{server.host}"
        port = {server.port}
        user = "root"
        tables.include = ["shop.*"]
    """)
    monkeypatch.setenv("LOADER_CONFIG", str(config))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    skipped = {"transaction": begun, "tables": [], "reason": "bad"}
    found = imported(
        tmp_path,
        Case("begin", form={"place": begun}),
        Case("approve_skip", given={"source": "shop", "form": skipped}),
        Case("plan_interval", "shop.delta"),
        Case("follow", form={"position": begun, "accept": None}),
        Case("check_source", "shop.check"),
    )
    checked = ends(found).pop("check_source")
    assert re.match(
        r"\w*TaskFailed: 1 of \d+ checks found errors .*\n  why: spark: the jars folder has no jars", checked
    )
    assert ends(found) == {
        "begin": "success",
        "approve_skip": f"{TaskWaits.__name__}: ",
        "plan_interval": "success",
        "follow": "success",
        "check_source": checked,
    }
    assert heavy(found) == {task: set() for task in found}
