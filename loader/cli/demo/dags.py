"""Runs the project's DAGs in an Airflow process next to the demo, one request and one answer per line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Self, cast

from loader.errors import LoaderError


class Airflow:
    """Airflow without a scheduler. Each `run` is a complete DAG run, with Spark tasks that use spark-submit.

    Args:
        home: of Airflow.
        config: of the loader.
        log: the file for all output of Airflow and the tasks.
        dags: a folder of DAG files; without it, the DAGs of the loader.
    """

    def __init__(self, home: Path, config: Path, log: Path, *dags: Path) -> None:
        self._places = [str(home), *map(str, dags)]
        self._log_path = log
        self._environment = os.environ | {"LOADER_CONFIG": str(config)}

    def __enter__(self) -> Self:
        self._log = self._log_path.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "loader.airflow.local_runs", *self._places],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        return self

    def __exit__(self, *error: object) -> None:
        cast("IO[str]", self._process.stdin).close()
        if error[0]:
            self._process.terminate()
        self._process.wait()
        self._log.close()

    def run(self, dag: str, **conf: object) -> dict[str, Any]:
        """Run a DAG, and return the results of its tasks by name.

        Raises:
            LoaderError: the run failed, with the error of the failed task.
        """
        stdin, stdout = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        stdin.write(json.dumps({"dag_id": dag, "conf": conf}) + "\n")
        stdin.flush()
        line = stdout.readline()
        hint = f"tail -n 100 {shlex.quote(str(self._log_path))}"
        if not line:
            raise LoaderError("Airflow ended", hint=hint, dag=dag, log=self._log_path)
        answer = json.loads(line)
        if answer["state"] != "success":
            errors = [task["error"] for task in answer["tasks"].values() if task["error"]]
            raise LoaderError("the DAG run failed", why="\n".join(errors), hint=hint, dag=dag, log=self._log_path)
        return {name: task["result"] for name, task in answer["tasks"].items()}
