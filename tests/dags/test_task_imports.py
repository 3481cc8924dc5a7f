"""What a task imports while it runs: every start of a task pays for it. A task without Spark work imports no Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.dags.conftest import Site
from tests.dags.operators import publish

_HEAVY = ("pyspark", "py4j", "boto3", "botocore", "pandas", "pyarrow", "numba", "loader.materialise.iceberg.warehouse")
_DRIVERS = ("numpy", "pymysql", "loader.pipeline")
"""Tasks that only read their form do without these."""
_RUN = """
import json, sys
from types import SimpleNamespace

names, cases = json.loads(sys.argv[1])
from loader.airflow.dags.source_dags import source_dags

dags, found = source_dags("shop"), {}
for task_id, dag_id, form, given in cases:
    task = dags[dag_id].get_task(task_id)
    ti = SimpleNamespace(
        dag_id=dag_id, run_id="manual__1", task_id=task_id, map_index=-1, try_number=1, run_type="manual",
        logical_date=None, conf={}, triggering_user_name="ada", xcom_push=lambda key, value: None,
        xcom_pull=lambda task_ids, key: None,
    )
    context = {"ti": ti, "dag_run": ti, "dag": task.dag, "task": task, "params": form, "outlet_events": {}}
    if run := getattr(task, "python_callable", None):
        sys.modules[run.__module__].get_current_context = lambda: context
        run(**given)
    else:
        vars(task).update(given)
        task.execute(context)
    found[task_id] = sorted(name for name in names if name in sys.modules)
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


def imported(folder: Path, *cases: Case) -> dict[str, set[str]]:
    """Run tasks one after the other in one process. Return the modules that are imported after each task."""
    tasks = [[case.task, case.dag, case.form, case.given] for case in cases]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps([[*_HEAVY, *_DRIVERS], tasks])],
        env=os.environ | {"AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    return {task: set(names) for task, names in json.loads(done.stdout.splitlines()[-1]).items()}


def test_tasks_without_spark_work_import_no_spark(site: Site, tmp_path: Path) -> None:
    site.stage()
    publish(site, site.plan.stop)
    site.quarantine("shop.orders")
    staged = Case("extract", "shop.delta", given={"arguments": site.interval, "now": False})
    found = imported(tmp_path, *CASES, staged)
    assert found.pop("choose_repair") == set()
    assert {task: names & set(_HEAVY) for task, names in found.items()} == {task: set() for task in found}
    assert found.keys() == {case.task for case in (*CASES[1:], staged)}
