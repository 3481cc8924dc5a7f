"""The person who triggered a run of Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context

_UNKNOWN = "Airflow"


def run_user(context: Context) -> str:
    """Return the name of the user who triggered the run, or `Airflow` if it is unknown."""
    return context["dag_run"].triggering_user_name or _UNKNOWN
