"""What all DAGs of the loader have in common."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from airflow.sdk import Param, XComArg

from loader.airflow.configuration import read_configured
from loader.airflow.errors import RetryWhereItHelps

SOURCE = "{{ params.source or '' }}"
"""The param `source` in a template. A form sends null for a field that is empty."""

# An error that a retry cannot fix fails its task at once, whatever stands here. The pauses add up to 15 minutes: a
# catalog, a name node or a server that is restarted is back by then.
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
    """How runs of a DAG follow each other: one at a time, also after a failure, unless `pause_on_failure` is set.

    The next run takes the oldest interval that is not done, so nothing is passed over. Never together with
    depends_on_past, under which the next run would hold the only slot and wait for the failed one, which could then
    not be cleared.
    """
    return {
        "max_active_runs": 1,
        "max_consecutive_failed_dag_runs": 1 if read_configured().pause_on_failure else 0,
        "catchup": False,
        # A date finds no work here: what is to be done is where the log was read up to.
        "allowed_run_types": ["scheduled", "manual"],
        # What is cleared after a corrected DAG was deployed must run the corrected one.
        "rerun_with_latest_version": True,
    }


def tasks(hours: float) -> dict[str, Any]:
    """The default arguments of a DAG's tasks, each of which fails after so many hours, or those of LOADER_TASK_HOURS.

    A task that hangs is tried again then. What it did is found and not done twice.
    """
    return {**TASKS, "execution_timeout": timedelta(hours=float(os.environ.get(HOURS, "") or hours))}


def alarm(task: XComArg) -> None:
    """Let a task fail the run, but never pause the DAG: what it warns of must not stop the reading of the log.

    Airflow pauses for failed runs, and does not count the failure of a teardown to a run.
    """
    if read_configured().pause_on_failure:
        task.as_teardown(on_failure_fail_dagrun=False)


def source_param(*, scheduled: bool) -> Param:
    """The param `source`: preselected where there is but one, else a choice of the configured names.

    Nobody fills in the form of a `scheduled` run, so that the choice can be left open there; its first task then fails
    and says so.
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
    """The param `tables`: names as schema.table; an empty field is null, and means all."""
    return Param(
        [],
        type=["null", "array"],
        items={"type": "string", "pattern": r"^[^.]+\.[^.]+$"},
        title="Tables",
        description=description,
    )
