"""The time limit of a task whose server takes the connection and never answers, by the clock of Airflow."""

from __future__ import annotations

import socket

import pytest
from airflow.sdk.execution_time.timeout import timeout

from loader.airflow.reports.errors import TaskFailed
from loader.airflow.tasks import plan_interval
from tests.dags.conftest import Site, Task
from tests.dags.operators import log_folder


@pytest.mark.timeout(60, method="thread")  # the signal of the other method is the one of Airflow's limit
def test_a_task_does_not_wait_for_a_silent_server(site: Site, running: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loader.airflow.tasks.get_current_context", lambda: running.context)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file = site.folder / "loader.toml"
        file.write_text(file.read_text().replace("port = 1\n", f"port = {silent.getsockname()[1]}\n"))
        with pytest.raises(TaskFailed) as caught, timeout(2):
            plan_interval.function("shop")
    assert caught.value.retry
    assert str(caught.value).startswith("the task took longer than its time limit\n")
    assert running.xcoms["error"]["what"] == "the task took longer than its time limit"
    (details,) = log_folder(running).glob("*.details.log")
    assert "pymysql" in details.read_text(encoding="utf-8")
