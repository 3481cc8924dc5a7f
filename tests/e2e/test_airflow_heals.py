"""A real Airflow on a real server: what on-call does after a failure, and what clearing a task changes (nothing)."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

_ROOT = Path(__file__).resolve().parents[2]
_DELTA = "continuous_delta"
_PARTS = (("api-server",), ("scheduler",), ("dag-processor",))
Found = TypeVar("Found")


class Airflow:
    """Its three parts, and the REST API as on-call would use it."""

    def __init__(self, home: Path, config: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.home = home
        self._url = f"http://127.0.0.1:{port}"
        self._headers = {"Content-Type": "application/json"}
        outside = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.env = outside | {
            "LOADER_CONFIG": str(config),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            # Tasks talk to the server at this address. Left at the default port, each fails with an empty log.
            "AIRFLOW__API__BASE_URL": self._url,
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(),
            "AIRFLOW__CORE__DAGS_FOLDER": str(_ROOT / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self._url}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__MAX_TASK_RETRY_DELAY": "1",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *arguments]

    def prepare(self) -> None:
        self.home.mkdir()
        for arguments in (("db", "migrate"), ("pools", "import", str(_ROOT / "infra" / "airflow" / "pools.json"))):
            subprocess.run(self.command(*arguments), env=self.env, check=True, capture_output=True)

    def wait_until_ready(self) -> None:
        _until("Airflow to answer", lambda: self._answers("GET", "/auth/token"))
        token = self._request("GET", "/auth/token")["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"
        for dag in ("initial_load", _DELTA):
            _until(f"{dag} to be known", lambda dag=dag: self._answers("GET", f"/api/v2/dags/{dag}"))

    def get(self, path: str) -> dict[str, Any]:
        return self._request("GET", f"/api/v2/dags/{path}")

    def post(self, path: str, **body: object) -> dict[str, Any]:
        return self._request("POST", f"/api/v2/dags/{path}", body)

    def unpause(self, dag: str) -> None:
        self._request("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})

    def trigger(self, dag: str) -> str:
        return str(self.post(f"{dag}/dagRuns", logical_date=None)["dag_run_id"])

    def wait_for(self, dag: str, run: str, state: str, tries: int = 1) -> None:
        """Wait until the run has ended, each cleared task having been tried that often, and has this state."""

        def ended() -> str | None:
            found = str(self.get(f"{dag}/dagRuns/{run}")["state"])
            tried = max(task["try_number"] for task in self.tasks(dag, run).values())
            return found if found in {"success", "failed"} and tried >= tries else None

        assert _until(f"{run} to end", ended) == state, self._logs(dag, run)

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        listed = self.get(f"{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {task["task_id"]: task for task in listed}

    def result(self, run: str, task: str, key: str = "return_value") -> dict[str, Any]:
        value = self.get(f"{_DELTA}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}")["value"]
        found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return found

    def clear(self, run: str, task: str) -> None:
        """What the button does: the task and what depends on it run again."""
        cleared = self.post(
            f"{_DELTA}/clearTaskInstances",
            dag_run_id=run,
            task_ids=[task],
            include_downstream=True,
            only_failed=False,
            reset_dag_runs=True,
            dry_run=False,
        )
        assert cleared["total_entries"] >= 1

    def _answers(self, method: str, path: str) -> bool:
        try:
            self._request(method, path)
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def _request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found

    def _logs(self, dag: str, run: str) -> str:
        logs = sorted((self.home / "logs" / f"dag_id={dag}" / f"run_id={run}").rglob("*.log"))
        return "\n".join(f"{log}:\n{log.read_text()[-3000:]}" for log in logs)


def _until(what: str, holds: Callable[[], Found], seconds: float = 600) -> Found:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.25)
    return found


@pytest.fixture(scope="module")
def airflow(empty: Loaded) -> Iterator[Airflow]:
    found = Airflow(empty.home / "airflow", empty.config)
    found.prepare()
    with ExitStack() as cleanup:
        for part in _PARTS:
            log = cleanup.enter_context((found.home / f"{part[0]}.log").open("wb"))
            process = subprocess.Popen(found.command(*part), env=found.env, stdout=log, stderr=log)
            cleanup.callback(process.wait)
            cleanup.callback(process.terminate)
        found.wait_until_ready()
        yield found


@pytest.fixture(scope="module")
def followed(airflow: Airflow, empty: Loaded) -> str:
    """The shop is loaded, and the first run that the schedule made has brought changes to it; that run."""
    airflow.unpause("initial_load")
    airflow.wait_for("initial_load", airflow.trigger("initial_load"), "success")
    empty.execute(*changes(1))
    airflow.unpause(_DELTA)
    run = str(_until("a scheduled run", lambda: airflow.get(f"{_DELTA}/dagRuns")["dag_runs"])[0]["dag_run_id"])
    airflow.wait_for(_DELTA, run, "success")
    return run


def test_a_stopped_server(airflow: Airflow, followed: str, empty: Loaded) -> None:
    empty.execute(*changes(2))
    run = airflow.trigger(_DELTA)
    _until("an interval", lambda: airflow.tasks(_DELTA, run)["snapshot_position"]["state"] == "success")
    empty.server.stop()
    airflow.wait_for(_DELTA, run, "failed")
    assert airflow.tasks(_DELTA, run)["extract"]["state"] == "failed"
    assert airflow.result(run, "extract", "error")["what"] == "the server does not answer"
    _until("the DAG to be paused", lambda: airflow.get(_DELTA)["is_paused"])
    interval = airflow.result(run, "snapshot_position")

    empty.server.start()
    airflow.clear(run, "extract")
    airflow.unpause(_DELTA)
    airflow.wait_for(_DELTA, run, "success", tries=airflow.tasks(_DELTA, run)["extract"]["try_number"] + 1)
    extracted = airflow.result(run, "extract")
    assert (extracted["start"], extracted["stop"]) == (interval["start"], interval["stop"])
    with pytest.raises(urllib.error.HTTPError, match="404"):
        airflow.result(run, "extract", "error")

    empty.execute(*changes(3))
    after = airflow.trigger(_DELTA)
    airflow.wait_for(_DELTA, after, "success")
    assert _contiguous(airflow)
    assert airflow.result(after, "snapshot_position")["start_seqno"] >= interval["stop_seqno"]
    assert empty.differences() == NOTHING_DIFFERS


def test_a_cleared_extract_changes_nothing(airflow: Airflow, followed: str, empty: Loaded) -> None:
    before = airflow.result(followed, "extract"), _published(empty), empty.snapshots()
    assert before[0]["status"] == "staged"
    tried = airflow.tasks(_DELTA, followed)["extract"]["try_number"]
    airflow.clear(followed, "extract")
    airflow.wait_for(_DELTA, followed, "success", tries=tried + 1)
    after = airflow.result(followed, "extract")
    assert after == before[0] | {"status": "already"}
    assert (_published(empty), empty.snapshots()) == before[1:]


def _published(loaded: Loaded) -> dict[str, bytes]:
    return {name: data for name, data in loaded.staged().items() if name.endswith("published.json")}


def _contiguous(airflow: Airflow) -> bool:
    """Whether the intervals of all runs, also of those that the schedule made meanwhile, follow each other."""
    runs = [run["dag_run_id"] for run in airflow.get(f"{_DELTA}/dagRuns")["dag_runs"] if run["state"] == "success"]
    intervals = [airflow.result(run, "snapshot_position") for run in runs]
    chain = sorted({(found["start_seqno"], found["stop_seqno"]) for found in intervals})
    return all(first[1] == second[0] for first, second in pairwise(chain))
