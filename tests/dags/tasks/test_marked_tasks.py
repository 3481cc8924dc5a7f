"""Tasks that a person marks as success, so that they did not run. Airflow then starts the tasks after them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from loader.airflow import tasks
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.sources import settings_of
from loader.airflow.versions import AIRFLOW, AirflowSkipException
from loader.pipeline import quarantines_of
from loader.resources import folder
from tests.dags.conftest import Site, Task

_TASKS = {"load_again": "read_tables_again", "skip": "approve_skip"}
_FORM = {"action": "resume", "tables": ["shop.a"]}


@pytest.mark.parametrize("action", ["release", "pause", "restore", "load_again", "skip", "set_schema", "withdraw_skip"])
def test_other_repairs_than_the_form_names_are_skipped(action: str, dags: Any, running: Task) -> None:
    dag = dags.dags["shop.repair"]
    task = dag.get_task(_TASKS.get(action, action))
    form = {name: param.value for name, param in dag.params.items() if name != "action"} | _FORM
    check = task._pre_execute_hook
    with pytest.raises(AirflowSkipException, match="the form asks for resume"):
        check({**running.context, "params": form})
    dag.get_task("resume")._pre_execute_hook({**running.context, "params": form})
    with pytest.raises(TaskFailed, match="the form of the action resume is wrong"):
        check({**running.context, "params": form | {"tables": []}})
    running.conf = {"tablez": ["shop.b"]}
    with pytest.raises(TaskFailed, match="unknown keys: tablez"):
        dag.get_task("resume")._pre_execute_hook({**running.context, "params": form})


_RUN = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from loader.airflow.local_runs import _prepare
home, dags, conf = sys.argv[1:]
_prepare(home, dags)
from loader.airflow.versions import open_dag_bag
dag = open_dag_bag(dags).dags["shop.repair"]
for task in dag.tasks:
    task.retries = 0
run = dag.test(run_conf=json.loads(conf), mark_success_pattern="^choose_repair$")
json.dump({task.task_id: str(task.state) for task in run.get_task_instances()}, answers)
"""


@pytest.mark.sweep
@pytest.mark.skipif(AIRFLOW == (3, 2), reason="this version of Airflow cannot run DAGs in one process")
def test_a_marked_choice_starts_only_its_repair(site: Site, tmp_path: Path) -> None:
    site.quarantine("shop.a")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(tmp_path / "home"), str(folder("dags")), json.dumps(_FORM)],
        env=outside,
        capture_output=True,
        text=True,
        check=True,
    )
    states = json.loads(done.stdout)
    assert (states.pop("choose_repair"), states.pop("resume")) == ("success", "failed")  # no table is paused
    assert set(states.values()) == {"skipped"}
    assert [str(table) for table in quarantines_of(settings_of("shop")).all()] == ["shop.a"]


@pytest.mark.parametrize(
    ("dag", "task"), [("delta", "extract"), ("delta", "materialise"), ("initial_load", "load_tables")]
)
def test_a_task_after_a_marked_one_says_that_it_has_nothing_to_work_on(
    dag: str, task: str, dags: Any, site: Site, running: Task
) -> None:
    operator = copy(dags.dags[f"shop.{dag}"].get_task(task))
    operator.arguments = operator.interval = None
    with pytest.raises(TaskFailed, match="the previous task has no result") as caught:
        operator.execute(running.context)
    assert not caught.value.retry
    assert "clear the marked task" in str(caught.value)


def test_a_run_with_a_marked_task_does_not_say_that_tables_are_up_to_date(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "get_current_context", lambda: running.context)
    staged = {"tables": [{"table": "shop.orders", "inserts": 3}], "start": "binlog.000001:4", "stop": "binlog.000001:9"}
    with caplog.at_level("INFO"):
        tasks.check_tables.function("shop", [staged, None])
    assert running.xcoms["note"].startswith("binlog.000001:4 to binlog.000001:9")
    assert "a task of this run has no result" in caplog.text
    assert "up to date" not in caplog.text
