"""Arguments that all DAGs of the loader share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from airflow.sdk import DAG, Asset, Param, XComArg
from airflow.sdk.definitions.param import ParamsDict

from loader.airflow.reports.errors import RetryWhereItHelps
from loader.airflow.reports.failure_notifier import FailureNotifier, RecoveryNote
from loader.airflow.reports.notifier_calls import make_notifier
from loader.airflow.versions import retry_arguments, run_arguments
from loader.dag_settings import DagSettings, dag_key

Name = Literal["delta", "initial_load", "replay", "repair", "maintain", "check"]

_SOURCE = re.compile(r"\bSOURCE\.")
_INTERVAL = re.compile(r"(\d+)([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_ASSET = "asset:"
_START = datetime(2026, 1, 1, tzinfo=UTC)
_RUNS = {"repair": 8}
"""Runs at a time, if more than one: a skip that waits for a person must not hold up other repairs."""


def dag_arguments(name: Name, source: str, settings: DagSettings, page: str) -> dict[str, Any]:
    """Return the arguments of a DAG whose runs follow each other, also after a failure unless it pauses itself.

    The next run takes the oldest interval that is not done, so nothing is skipped. Do not combine this with
    depends_on_past: the next run would hold the only slot and wait for the failed run, which could not be cleared.

    Args:
        name: of the DAG. Its id is `<source>.<name>`.
        source: its name.
        settings: of the source's DAGs.
        page: the documentation of the DAG. `SOURCE.` in it becomes the prefix of the DAG ids.

    Raises:
        UsageError: the notifier cannot be created.
    """
    key = dag_key(source)
    return {
        "dag_id": f"{key}.{name}",
        "dag_display_name": f"{source}.{name}",
        "doc_md": _SOURCE.sub(f"{key}.", page),
        "start_date": _START,
        "tags": ["binlog-loader", source, name, *settings.tags],
        "default_args": task_arguments(source, settings, getattr(settings.timeout_hours, name)),
        "max_active_runs": _RUNS.get(name, 1),
        "max_consecutive_failed_dag_runs": 1 if settings.pause_on_failure else 0,
        "catchup": False,
        **run_arguments(_run_types(name, getattr(settings.schedule, name, ""))),
    }


def _run_types(name: Name, schedule: str) -> list[str]:
    """Return the types of runs that a DAG accepts.

    The dates of a run select no work, so Airflow refuses backfills. Its error would not name the replay, so the delta
    accepts them and its first task refuses each run: see refuse_backfill.
    """
    scheduled = "asset_triggered" if schedule.startswith(_ASSET) else "scheduled"
    return [scheduled, "manual", *(["backfill"] if name == "delta" else [])]


def task_arguments(source: str, settings: DagSettings, hours: float) -> dict[str, Any]:
    """Return the default arguments of tasks.

    An error that a retry cannot fix fails its task at once. The pauses between five retries add up to 15 minutes, which
    is enough for the restart of a catalog, a name node or a server. A task that hangs fails after `hours` and is tried
    again. Finished work is found and not done twice.
    """
    found: dict[str, Any] = {
        "owner": settings.owner,
        "retries": settings.retries,
        "retry_delay": timedelta(seconds=30),
        "max_retry_delay": timedelta(minutes=10),
        **retry_arguments(RetryWhereItHelps()),
        "execution_timeout": timedelta(hours=hours),
    }
    found |= {name: value for name in ("queue", "executor") if (value := getattr(settings, name))}
    if settings.notifier.type:
        found["on_failure_callback"] = FailureNotifier(source, make_notifier(source, settings.notifier))
        found["on_success_callback"] = RecoveryNote(source)
    return found


def parse_schedule(text: str) -> Any:
    """Return a configured schedule in the form that a DAG takes."""
    if match := _INTERVAL.fullmatch(text):
        return timedelta(**{_UNITS[match[2]]: int(match[1])})
    if text.startswith(_ASSET):
        asset = text.removeprefix(_ASSET)
        return [Asset.ref(uri=asset) if "://" in asset else Asset.ref(name=asset)]
    return text or None


def alarm(task: XComArg, settings: DagSettings) -> None:
    """Let a task fail without pausing the DAG: its warning must not stop the reading of the log.

    Airflow pauses a DAG for failed runs. The failure of a teardown task does not make the run a failed run.
    """
    if settings.pause_on_failure:
        task.as_teardown(on_failure_fail_dagrun=False)


def set_params(dag: DAG, params: Mapping[str, Param]) -> None:
    """Set the params of a DAG whose tasks exist. Airflow copies the params for each task that is made after them."""
    dag.params = ParamsDict(dict(params))
