"""Callbacks of tasks: a failure is notified once for each cause, until the task succeeds."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.notifier import BaseNotifier

from loader.airflow.reports.errors import ERROR
from loader.airflow.reports.notices import Notices
from loader.airflow.reports.notifier_calls import event_factory, logged_failures, send

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOG = logging.getLogger(__name__)
_CAUSE = ("error", "what", "why", "where")
"""The fields of an error that differ between causes."""
_NUMBERED = re.compile(r"\S*\d\S*")
"""Words with a digit, such as times, counts, process ids and names of temporary folders: each try has others."""
NOTIFIED = "notified"  # XCom key
"""What a task pushes if its failure needs no notification: another event had its cause, or its run is refused."""


class FailureNotifier:
    """Callback of a failed task: calls a notifier, except for the cause of the last failure if no success came since.

    Args:
        source: its name.
        notifier: what to call.
    """

    def __init__(self, source: str, notifier: BaseNotifier) -> None:
        self.source, self.notifier = source, notifier

    def __call__(self, context: Context) -> None:
        """Notify. The last lines of the task's log stay those of the error, so nothing else is logged there."""
        task = _task(context)
        error: dict[str, Any] | None = None
        notified: Any = None
        with logged_failures():
            ti: Any = context["ti"]
            error = ti.xcom_pull(task_ids=ti.task_id, key=ERROR)
            if ti.xcom_pull(task_ids=ti.task_id, key=NOTIFIED):
                _LOG.debug("no notification: another event had this cause, or the run is refused")
                return
            notified = Notices(self.source).get(f"failed.{task}")
        if error and notified == _cause(error):
            _LOG.debug("no notification: the task failed before for the same cause")
            return
        if send(self.notifier, context, event_factory(self.source).failure(task, error)):
            with logged_failures():
                Notices(self.source).put(f"failed.{task}", _cause(error or {}))


class RecoveryNote:
    """Callback of a task that succeeded: the next failure is notified, also for the same cause as the last one.

    Args:
        source: its name.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def __call__(self, context: Context) -> None:
        """Forget the last failure."""
        with logged_failures():
            Notices(self.source).end(f"failed.{_task(context)}")


def _task(context: Context) -> str:
    """Return the name of a task, with its place in a mapped task."""
    ti: Any = context["ti"]
    index = getattr(ti, "map_index", None)
    name = f"{getattr(ti, 'dag_id', '')}.{ti.task_id}".lstrip(".")
    return name if index is None or index < 0 else f"{name}.{index}"


def _cause(error: Mapping[str, Any]) -> list[Any]:
    return [_NUMBERED.sub("#", found) if isinstance(found := error.get(name), str) else found for name in _CAUSE]
