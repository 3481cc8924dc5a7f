"""One notification for each cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loader.airflow.reports.notifications import NewCauseNotifier
from loader.airflow.versions import HAS_PREVIOUS_TASKS
from loader.errors import DataError, RetryableError
from tests.dags.notifiers import FileNotifier


@dataclass
class Failed:
    """A failed task, its XComs by run, and the run before."""

    errors: dict[str, Any]
    before: str = ""
    state: str = "failed"
    run_id: str = "scheduled__2"
    task_id: str = "extract"
    asked: list[str] = field(default_factory=list)

    def xcom_pull(self, task_ids: str, key: str, run_id: str = "") -> Any:
        assert (task_ids, key) == ("extract", "error")
        return self.errors.get(run_id or self.run_id)

    def get_previous_ti(self) -> Any:
        return type("Previous", (), {"run_id": self.before, "state": self.state}) if self.before else None


def error(what: str = "a table failed", why: str = "a bad value") -> dict[str, Any]:
    return DataError(what, why=why, hint="look", table="shop.a").as_dict()


def notified(task: Any, tmp_path: Path) -> bool:
    file = tmp_path / "sent"
    NewCauseNotifier(FileNotifier(str(file), "failed"))({"ti": task})  # type: ignore[typeddict-item]
    return file.exists()


@pytest.mark.skipif(not HAS_PREVIOUS_TASKS, reason="tasks of this version of Airflow do not know the run before")
def test_the_same_cause_is_told_once(tmp_path: Path) -> None:
    again = {"scheduled__1": error(), "scheduled__2": error()}
    assert not notified(Failed(again, "scheduled__1"), tmp_path)


@pytest.mark.parametrize(
    "task",
    [
        Failed({"scheduled__2": error()}),
        Failed({"scheduled__2": error()}, "scheduled__1"),
        Failed({"scheduled__2": error(), "scheduled__1": error("another table failed")}, "scheduled__1"),
        Failed({"scheduled__2": error(), "scheduled__1": error(why="another value")}, "scheduled__1"),
        Failed({"scheduled__2": error(), "scheduled__1": RetryableError("a table failed").as_dict()}, "scheduled__1"),
        Failed({"scheduled__2": error(), "scheduled__1": error()}, "scheduled__1", state="success"),
        Failed({"scheduled__2": error()}, "scheduled__2"),  # the newest run, for a run without a date
        Failed({}, "scheduled__1"),
        object(),  # a callback outside of the task has no such methods
    ],
)
def test_another_cause_or_one_that_is_not_known_is_told(task: Any, tmp_path: Path) -> None:
    if isinstance(task, Failed):
        assert notified(task, tmp_path)
    else:
        with pytest.raises(AttributeError):
            task.xcom_pull()
        assert notified(type("Outside", (), {"task_id": "extract"})(), tmp_path)
