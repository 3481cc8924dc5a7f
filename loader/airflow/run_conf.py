"""Check of a run's conf: Airflow validates the params of a DAG, but silently accepts any other key."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from loader.airflow.versions import AirflowSkipException
from loader.errors import UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOG = logging.getLogger(__name__)


def refuse_unknown_conf(context: Context) -> None:
    """Refuse a run whose conf has a key that is no param of the DAG.

    Raises:
        UsageError: a key is unknown.
        AirflowSkipException: a key is unknown, and a failed run would pause the DAG. The run is skipped, so that a
            typing error in one run does not stop the scheduled runs.
    """
    dag = context["dag"]
    known = set(dag.params)
    unknown = sorted(set(context["dag_run"].conf or {}) - known)
    if not unknown:
        return
    error = UsageError(
        f"the run's conf has unknown keys: {', '.join(unknown)}",
        hint=f"trigger a new run; the params of this DAG are {', '.join(sorted(known)) or 'none'}",
        dag=dag.dag_id,
    )
    if not dag.max_consecutive_failed_dag_runs:
        raise error
    for line in str(error).splitlines():
        _LOG.error("%s", line)
    raise AirflowSkipException(error.what)
