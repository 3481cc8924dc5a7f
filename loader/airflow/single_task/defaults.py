"""Arguments that a DAG file leaves out: those of the DAGs that the loader makes for the source."""

from __future__ import annotations

from typing import Any, Literal

from loader.airflow.dags.arguments import task_arguments
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.sources import dag_settings_of
from loader.dag_settings import pool_of


def with_defaults(source: str, use_case: Literal["delta", "initial_load", "replay"], given: dict[str, Any]) -> Any:
    """Return the arguments of an operator: those given, and pool, retries, time limit and so on of the source.

    The `default_args` of the DAG go before those of the source. The events of the tables need no outlet of the user.

    Args:
        source: its name.
        use_case: whose time limit holds.
        given: by the DAG file, with `default_args`, which Airflow adds.

    Raises:
        UsageError: the configuration is wrong, or has no such source.
    """
    settings = dag_settings_of(source)
    hours = getattr(settings.timeout_hours, use_case)
    defaults = {"pool": pool_of(source, settings), **task_arguments(source, settings, hours)}
    return {
        **given,
        "default_args": defaults | given.get("default_args", {}),
        "outlets": [*given.get("outlets", ()), tables_alias(source)],
    }
