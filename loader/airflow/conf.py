"""What a run may be told: Airflow checks the values of a DAG's params, but takes any other key without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.errors import UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context


def refuse_unknown_conf(context: Context) -> None:
    """Raise UsageError when the run's conf has a key that is no param of the DAG."""
    known = set(context["dag"].params)
    unknown = sorted(set(context["dag_run"].conf or {}) - known)
    if unknown:
        raise UsageError(
            f"the run's conf has unknown keys: {', '.join(unknown)}",
            hint=f"this DAG knows {', '.join(sorted(known))}; trigger a new run with these",
            dag=context["dag"].dag_id,
        )
