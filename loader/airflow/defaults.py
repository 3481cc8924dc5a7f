"""Settings and params that all DAGs of the loader share."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import Param, XComArg

from loader.airflow.configuration import read_configured
from loader.airflow.errors import RetryWhereItHelps

SOURCE = "{{ params.source or '' }}"
"""The param `source` in a template. A form sends null for an empty field."""

# An error that a retry cannot fix fails its task at once, independent of these settings. The pauses add up to 15
# minutes, which is enough for the restart of a catalog, a name node or a server.
TASKS: dict[str, Any] = {
    "owner": "data-platform",
    "retries": 5,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
    "retry_policy": RetryWhereItHelps(),
}

HOURS = "LOADER_TASK_HOURS"


def serial() -> dict[str, Any]:
    """Return arguments of a DAG whose runs follow each other, also after a failure unless `pause_on_failure` is set.

    The next run takes the oldest interval that is not done, so nothing is skipped. Do not combine this with
    depends_on_past: the next run would hold the only slot and wait for the failed run, which could not be cleared.
    """
    return {
        "max_active_runs": 1,
        "max_consecutive_failed_dag_runs": 1 if read_configured().pause_on_failure else 0,
        "catchup": False,
        # Dates do not select work: it starts at the position that the log was read up to.
        "allowed_run_types": ["scheduled", "manual"],
        # A task that is cleared after a new DAG version was deployed must run the new version.
        "rerun_with_latest_version": True,
    }


def tasks(hours: float) -> dict[str, Any]:
    """Return the default arguments of tasks. Each fails after `hours`, or after LOADER_TASK_HOURS if that is set.

    A task that hangs is tried again then. Finished work is found and not done twice.
    """
    return {**TASKS, "execution_timeout": timedelta(hours=float(os.environ.get(HOURS, "") or hours))}


def alarm(task: XComArg) -> None:
    """Let a task fail without pausing the DAG: its warning must not stop the reading of the log.

    Airflow pauses a DAG for failed runs. The failure of a teardown task does not make the run a failed run.
    """
    if read_configured().pause_on_failure:
        task.as_teardown(on_failure_fail_dagrun=False)


def source_param(*, scheduled: bool) -> Param:
    """Return the param `source`. The only source is preselected; several are a choice of names.

    Nobody fills in the form of a `scheduled` run, so its source may be empty. Then its first task fails and says so.
    """
    found = read_configured()
    title = "Source"
    if not found.sources:
        help_text = f"Name of a source; empty: that of LOADER_SOURCE, or the only one. {found.fault}"
        return Param(None, type=["null", "string"], title=title, description=help_text)
    names = list(found.sources)
    if found.chosen:
        return Param(found.chosen, type="string", enum=names, title=title, description="A source of the configuration.")
    if not scheduled:
        return Param(type="string", enum=names, title=title, description="Choose a source of the configuration.")
    help_text = "Choose a source of the configuration. LOADER_SOURCE sets the one of scheduled runs."
    shown = {"null": "that of LOADER_SOURCE"}
    return Param(
        None, type=["null", "string"], enum=[None, *names], values_display=shown, title=title, description=help_text
    )


def tables_param(description: str) -> Param:
    """Return the param `tables`: names as schema.table. An empty field is null, and means all tables."""
    return Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": r"^[^.]+\.[^.]+$"},
        title="Tables",
        description=description,
    )
