"""Notifications of failed tasks: one for each cause, not one for each run that fails because of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.notifier import BaseNotifier

from loader.airflow.reports.errors import ERROR
from loader.airflow.versions import HAS_PREVIOUS_TASKS

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOG = logging.getLogger(__name__)
_CAUSE = ("error", "what", "why", "where")
"""The fields of an error that tell causes apart."""


class NewCauseNotifier:
    """Calls a notifier for a failed task, unless the same task of the run before failed for the same cause.

    Args:
        notifier: what to call.
    """

    def __init__(self, notifier: BaseNotifier) -> None:
        self.notifier = notifier

    def __call__(self, context: Context) -> None:
        """Notify, or log why not."""
        if _failed_before(context):
            _LOG.info("no notification: the run before failed for the same cause")
            return
        self.notifier(context)


def _failed_before(context: Context) -> bool:
    """Return whether the same task failed for the same cause in the scheduled run before; False if unknown."""
    if not HAS_PREVIOUS_TASKS:
        return False
    ti: Any = context["ti"]
    try:
        error = ti.xcom_pull(task_ids=ti.task_id, key=ERROR)
        before = ti.get_previous_ti()
        if not error or before is None or before.run_id == ti.run_id or before.state != "failed":
            return False
        earlier = ti.xcom_pull(task_ids=ti.task_id, key=ERROR, run_id=before.run_id)
    except Exception as unknown:  # a notification too many is better than one too few
        _LOG.warning("the error of the run before cannot be read: %s", unknown)
        return False
    return bool(earlier) and _cause(earlier) == _cause(error)


def _cause(error: Mapping[str, Any]) -> list[Any]:
    return [error.get(name) for name in _CAUSE]
