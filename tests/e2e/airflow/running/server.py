"""A real Airflow with its parts, and its REST API as on-call would use it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from infra.postgres import sqlalchemy_uri
from tests.e2e.airflow.running.task_log import work_of
from tests.support.airflow_version import AIRFLOW, WAITING

_ROOT = Path(__file__).resolve().parents[4]
DELTA = "shop.delta"
LOAD = "shop.initial_load"
# Before 3.3, a task that waits for a person waits in the triggerer.
PARTS = ("api-server", "scheduler", "dag-processor", *(() if AIRFLOW >= (3, 3) else ("triggerer",)))
Found = TypeVar("Found")
_ENDED = "Received executor event with state success"


class Airflow:
    """An Airflow of its own, without a password. Its database is SQLite and its executor is the LocalExecutor."""

    def __init__(self, home: Path, config: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.home = home
        self.url = f"http://127.0.0.1:{port}"
        self._headers = {"Content-Type": "application/json"}
        self._users: list[str] = []
        outside = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.env = outside | {
            "LOADER_CONFIG": str(config),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            # Tasks talk to the server at this address. Left at the default port, each fails with an empty log.
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__SECRET_KEY": secrets.token_hex(),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(),
            "AIRFLOW__CORE__DAGS_FOLDER": str(_ROOT / "dags"),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__MAX_TASK_RETRY_DELAY": "1",
            "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",  # the files do not change
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",  # five seconds are too short for a busy machine
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",  # between two tasks of a run
        }

    def require_login(self, **roles: str) -> None:
        """Let these users log in, each with its name as the password. The first one is used for the REST API."""
        self._users = list(roles)
        passwords = self.home.parent / "passwords.json"
        passwords.write_text(json.dumps({name: name for name in roles}), encoding="utf-8")
        self.env |= {
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in roles.items()),
        }

    def serve_below(self, path: str) -> None:
        """Let all addresses of this Airflow begin with a path such as `/airflow`, as behind a proxy."""
        self.url += path
        self.env["AIRFLOW__API__BASE_URL"] = self.url
        self.env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = f"{self.url}/execution/"

    def keep_metadata_in(self, database: str) -> None:
        """Let Airflow use this database, by its JDBC address. Call it before `prepare`."""
        self.env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = sqlalchemy_uri(database)

    def lose_tasks_soon(self) -> None:
        """Let the scheduler soon give up tasks that send no sign of life."""
        self._set_scheduler(TASK_INSTANCE_HEARTBEAT_TIMEOUT=60, TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL=5)

    def replace_scheduler_soon(self) -> None:
        """Let a scheduler soon take over the tasks of another one that sends no sign of life."""
        self._set_scheduler(SCHEDULER_HEALTH_CHECK_THRESHOLD=10, ORPHANED_TASKS_CHECK_INTERVAL=5)

    def _set_scheduler(self, **seconds: int) -> None:
        self.env |= {f"AIRFLOW__SCHEDULER__{name}": str(value) for name, value in seconds.items()}

    def add_dag_file(self, text: str) -> None:
        """Let Airflow also read a DAG file with this text. Call it before the DAG processor is started."""
        folder = self.home.parent / "dags"
        shutil.copytree(_ROOT / "dags", folder)
        (folder / "added.py").write_text(text, encoding="utf-8")
        self.env["AIRFLOW__CORE__DAGS_FOLDER"] = str(folder)

    def add_connection(self, name: str, **fields: object) -> None:
        """Store a connection in Airflow's database, as a person does with the form."""
        self.request("POST", "/api/v2/connections", {"connection_id": name, **fields})

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *arguments]

    def prepare(self, *sources: str) -> None:
        """Create the database, and the pools of these sources or of the shop."""
        self.home.mkdir()
        names = [f"{source}.{use}" for source in sources or ("shop",) for use in ("spark", "load")]
        pools = [("pools", "set", name, "1", "of a source") for name in names]
        for arguments in (("db", "migrate"), *pools):
            subprocess.run(self.command(*arguments), env=self.env, check=True, capture_output=True)

    def wait_until_ready(self) -> None:
        login = {"username": self._users[0], "password": self._users[0]} if self._users else None
        method = "POST" if login else "GET"
        until("Airflow to answer", lambda: self._answers(method, "/auth/token", login))
        token = self.request(method, "/auth/token", login)["access_token"]
        self._headers["Authorization"] = f"Bearer {token}"
        for dag in (LOAD, DELTA):
            self.wait_until_known(dag)

    def wait_until_known(self, dag: str) -> None:
        until(f"{dag} to be known", lambda: self._answers("GET", f"/api/v2/dags/{dag}"))

    def get(self, path: str) -> dict[str, Any]:
        return self.request("GET", f"/api/v2/dags/{path}")

    def post(self, path: str, **body: object) -> dict[str, Any]:
        return self.request("POST", f"/api/v2/dags/{path}", body)

    def patch(self, path: str, **body: object) -> dict[str, Any]:
        return self.request("PATCH", f"/api/v2/dags/{path}", body)

    def page(self, path: str) -> str:
        """The text of a page."""
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return str(answer.read().decode())

    def unpause(self, dag: str) -> None:
        self.patch(dag, is_paused=False)

    def trigger(self, dag: str, **conf: object) -> str:
        return str(self.post(f"{dag}/dagRuns", logical_date=None, conf=conf)["dag_run_id"])

    def wait_for(self, dag: str, run: str, state: str, tries: int = 1) -> None:
        """Wait until the run has ended, each cleared task having been tried that often, and has this state."""

        def ended() -> str | None:
            found = str(self.get(f"{dag}/dagRuns/{run}")["state"])
            if found not in {"success", "failed"}:
                return None
            tried = max(task["try_number"] for task in self.tasks(dag, run).values())
            return found if tried >= tries else None

        assert until(f"{run} to end", ended) == state, self._logs(dag, run)

    def wait_for_question(self, dag: str, run: str, task: str) -> None:
        """Wait until a task asks a person, and the scheduler knows that the process that asked has ended.

        Airflow fails a task that goes on before that, or asks again if the task has retries.
        """

        def asked() -> bool:
            found = self.tasks(dag, run)[task]
            process = f"task_id='{task}', run_id='{run}', try_number={found['try_number']},"
            log = (self.home / "scheduler.log").read_text(encoding="utf-8").splitlines()
            return found["state"] == WAITING and any(_ENDED in line and process in line for line in log)

        until("the question", asked)

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        listed = self.get(f"{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {task["task_id"]: task for task in listed}

    def result(self, run: str, task: str, key: str = "return_value") -> dict[str, Any]:
        value = self.xcom(run, task, key)
        found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return found

    def xcom(self, run: str, task: str, key: str) -> Any:
        return self.get(f"{DELTA}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}")["value"]

    def asset_events(self, dag: str, run: str) -> list[dict[str, Any]]:
        """The events of the assets that a run updated."""
        query = urllib.parse.urlencode({"source_dag_id": dag, "source_run_id": run, "limit": 100})
        found = self.request("GET", f"/api/v2/assets/events?{query}")
        return list(found["asset_events"])

    def events(self, dag: str, run: str, task: str) -> list[str]:
        """What the page of a task lists as its events, oldest first, such as `running` and `success`."""
        query = urllib.parse.urlencode({"dag_id": dag, "run_id": run, "task_id": task, "order_by": "when"})
        return [entry["event"] for entry in self.request("GET", f"/api/v2/eventLogs?{query}")["event_logs"]]

    def links(self, run: str, task: str) -> dict[str, str | None]:
        """The addresses that the page of a task of the delta links to, by their texts."""
        found = self.get(f"{DELTA}/dagRuns/{run}/taskInstances/{task}/links")
        return dict(found["extra_links"])

    def clear(self, run: str, task: str, dag: str = DELTA) -> None:
        """What the button does: the task and what depends on it run again."""
        cleared = self.post(
            f"{dag}/clearTaskInstances",
            dag_run_id=run,
            task_ids=[task],
            include_downstream=True,
            only_failed=False,
            reset_dag_runs=True,
            dry_run=False,
        )
        assert cleared["total_entries"] >= 1

    def first_times(self, dag: str, run: str, task: str, *beginnings: str) -> list[float | None]:
        """When the log of a task first had a line with each of these beginnings, in seconds since 1970."""
        entries = self._entries(dag, run, task)
        found = (next((one for one in entries if str(one["event"]).startswith(text)), None) for text in beginnings)
        return [datetime.fromisoformat(one["timestamp"]).timestamp() if one else None for one in found]

    def log(self, dag: str, run: str, task: str, attempt: int | None = None) -> list[str]:
        """The lines of the log of a task's last try, or of another one, without what Airflow logs around its work."""
        return work_of(self._entries(dag, run, task, attempt))

    def error(self, dag: str, run: str, task: str, what: str) -> list[str]:
        """The lines of the error that the log of a failed task ends with: what failed, what to do, where to read on."""
        xcom = self.get(f"{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/error")["value"]
        assert (json.loads(xcom) if isinstance(xcom, str) else xcom)["what"] == what
        lines = self.log(dag, run, task)
        found = lines[next(index for index, line in enumerate(lines) if line.startswith(what)) :]
        assert any(line.startswith("  what to do: ") for line in found), lines
        assert found[-2].startswith("  read on: docs/runbook.md, section "), lines
        assert found[-1] == "Task exited"
        return found

    def _entries(self, dag: str, run: str, task: str, attempt: int | None = None) -> list[dict[str, Any]]:
        """The entries of the log of a task's last try, or of another one."""
        folder = self.home / "logs" / f"dag_id={dag}" / f"run_id={run}" / f"task_id={task}"
        files = folder.glob(f"attempt={attempt or '*[0-9]'}.log")
        newest = max(files, key=lambda path: path.stat().st_mtime)
        return [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]

    def _answers(self, method: str, path: str, body: object = None) -> bool:
        try:
            self.request(method, path, body)
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    def login(self, user: str) -> Callable[[str, str, object], dict[str, Any]]:
        """Return a function that asks the REST API as this user: see `request`."""
        token = self.request("POST", "/auth/token", {"username": user, "password": user})["access_token"]
        return partial(self.request, headers=self._headers | {"Authorization": f"Bearer {token}"})

    def request(
        self, method: str, path: str, body: object = None, *, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the answer of the REST API. The headers of another user can be given."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers or self._headers, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.INTERNAL_SERVER_ERROR:
                error.add_note((self.home / "api-server.log").read_text(encoding="utf-8")[-5000:])
            raise

    def _logs(self, dag: str, run: str) -> str:
        states = {name: (task["hostname"], task["state"]) for name, task in self.tasks(dag, run).items()}
        logs = sorted((self.home / "logs" / f"dag_id={dag}" / f"run_id={run}").rglob("*.log"))
        return "\n".join([str(states), *(f"{log}:\n{log.read_text()[-3000:]}" for log in logs)])


def until(what: str, holds: Callable[[], Found], seconds: float = 600) -> Found:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.5)
    return found


@contextmanager
def running(airflow: Airflow, *parts: str) -> Iterator[Airflow]:
    """Start parts of it; they end with the block."""
    with ExitStack() as cleanup:
        for part in parts or PARTS:
            cleanup.enter_context(part_of(airflow, part))
        airflow.wait_until_ready()
        yield airflow


@contextmanager
def part_of(airflow: Airflow, part: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start one part of it; it ends with the block."""
    with (airflow.home / f"{part}.log").open("ab") as log:
        process = subprocess.Popen(airflow.command(part), env=airflow.env, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
