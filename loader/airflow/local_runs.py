"""Runs DAGs in this process, without a scheduler, for the demo and for trying a configuration.

    python -m loader.airflow.local_runs AIRFLOW_HOME [DAGS]

runs the DAGs of the loader, or of the files in the folder DAGS. It reads a request per line, `{"dag_id": "shop.delta",
"conf": {}}`, and answers each with a line of JSON: the result of `run_dag`. All other output of Airflow and the tasks
goes to stderr. Airflow starts once for all requests. Pools and `max_active_runs` have no effect here, and a task is
tried once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from loader.resources import folder

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance

_SPARK = "AIRFLOW_CONN_SPARK_DEFAULT"


def run_dag(dag_id: str, conf: dict[str, Any], airflow_home: str | Path, dags: str | Path = "") -> dict[str, Any]:
    """Run a DAG of the loader, or of the files in the folder `dags`, once and return its outcome.

    The first call sets Airflow's home for this process. It must come before any import of airflow. Spark runs on this
    machine, unless the environment has a connection `spark_default`.

    Returns:
        `dag_id`, `run_id`, `state`, `seconds`, and `tasks`: by name their `state`, their `result` (XCom), and the
        text of the `error` that ended them.

    Raises:
        RuntimeError: a DAG file cannot be imported, this process already uses another home, or this is Airflow 3.2.
        KeyError: there is no such DAG.
    """
    dags = str(Path(dags).absolute() if dags else folder("dags"))
    _prepare(str(Path(airflow_home).absolute()), dags)
    from loader.airflow.versions import open_dag_bag

    # Parsed again for each run, because a run renders the templates of its tasks in place.
    bag = open_dag_bag(dags)
    if bag.import_errors:
        raise RuntimeError("\n".join(bag.import_errors.values()))
    dag = bag.dags[dag_id]
    for task in dag.tasks:
        task.retries = 0  # the caller waits, so errors are reported at once
    began = time.monotonic()
    run: DagRun = dag.test(run_conf=conf)
    return {
        "dag_id": dag_id,
        "run_id": run.run_id,
        "state": str(run.state),
        "seconds": round(time.monotonic() - began, 3),
        "tasks": {task.task_id: _outcome(task) for task in run.get_task_instances()},
    }


@cache
def _prepare(airflow_home: str, dags: str) -> None:
    """Set Airflow up in this process, once."""
    if version("apache-airflow-core").startswith("3.2."):
        # Its API inside the process answers before it has started (InProcessExecutionAPI.transport).
        raise RuntimeError("Airflow 3.2 cannot run DAGs in one process; start a scheduler, or use Airflow 3.1 or 3.3")
    if os.environ.get("AIRFLOW_HOME") != airflow_home and "airflow" in sys.modules:
        raise RuntimeError("airflow was imported already, with another home")
    os.environ |= _environment(airflow_home, dags)
    os.environ.setdefault(_SPARK, json.dumps({"conn_type": "spark", "host": "local[*]"}))
    from airflow.utils.db import initdb

    initdb()  # creates or migrates the database


def _environment(airflow_home: str, dags: str) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": airflow_home,
        "AIRFLOW__CORE__DAGS_FOLDER": dags,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # The default connections have a Spark connection with YARN.
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
    }


def _outcome(task: TaskInstance) -> dict[str, Any]:
    from loader.airflow.reports.errors import ERROR
    from loader.spark.job import rebuild

    error = task.xcom_pull(task_ids=task.task_id, key=ERROR)
    return {
        "state": str(task.state),
        "result": task.xcom_pull(task_ids=task.task_id),
        "error": str(rebuild(error)) if error else None,
    }


def _serve(answers: TextIO, *places: str) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        answer = run_dag(request["dag_id"], request.get("conf", {}), *places)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    # Airflow logs to stdout, which is only for answers.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _serve(answers, *sys.argv[1:])
