"""What all DAGs of the loader have in common."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Param

# One run at a time, and no next one after a failure: the DAG pauses itself. Never together with depends_on_past,
# under which the next run would hold the only slot and wait for the failed one, which could then not be cleared.
SERIAL: dict[str, Any] = {
    "max_active_runs": 1,
    "max_consecutive_failed_dag_runs": 1,
    "catchup": False,
    # A date finds no work here: what is to be done is where the log was read up to.
    "allowed_run_types": ["scheduled", "manual"],
    # What is cleared after a mended DAG was deployed must run the mended one.
    "rerun_with_latest_version": True,
}

# An error that a retry cannot fix fails its task at once, whatever stands here. The pauses add up to 15 minutes: a
# catalog, a name node or a server that is restarted is back by then.
TASKS: dict[str, Any] = {
    "owner": "data-platform",
    "retries": 5,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
}


def source_param() -> Param:
    """The param `source`."""
    return Param(
        "",
        type="string",
        title="Source",
        description="Name of a source in the configuration; empty: that of LOADER_SOURCE, or the only one.",
    )
