"""The differences between the supported versions of Airflow. Everything else uses names that all of them have.

docs/reference/versions.md lists what each version lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any


def release_of(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


AIRFLOW = release_of(version("apache-airflow-core"))
HAS_RETRY_POLICIES = AIRFLOW >= (3, 3)
"""Whether a policy decides about the retries of a task. Otherwise only a class of exceptions prevents them."""
HAS_AWAITING_INPUT = AIRFLOW >= (3, 3)
"""Whether a task that waits for an approval has a state of its own. Otherwise it is deferred to the triggerer."""
HAS_RUN_TYPES = AIRFLOW >= (3, 2)
"""Whether a DAG can refuse backfills."""

if TYPE_CHECKING:
    from airflow.sdk import DAG
if TYPE_CHECKING or AIRFLOW >= (3, 2):
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        AirflowTaskTimeout,
        ParamValidationError,
        TaskDeferred,
    )
    from airflow.sdk.plugins_manager import AirflowPlugin
else:
    from airflow.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
        AirflowTaskTimeout,
        ParamValidationError,
        TaskDeferred,
    )
    from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING or HAS_RETRY_POLICIES:
    from airflow.sdk import RetryDecision, RetryPolicy
else:

    class RetryPolicy:
        """Stands for Airflow's class, which this version lacks. No task has a policy."""

    RetryDecision = None

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowPlugin",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "ParamValidationError",
    "RetryDecision",
    "RetryPolicy",
    "TaskDeferred",
]


def run_arguments(run_types: Collection[str]) -> dict[str, Any]:
    """Return the arguments of a DAG for its runs, as far as this version has them.

    Args:
        run_types: the types of runs that the DAG accepts. `manual` includes the runs that other DAGs trigger.
    """
    found: dict[str, Any] = {}
    if HAS_RUN_TYPES:
        found["allowed_run_types"] = list(run_types)
        # Before 3.3 a run that a TriggerDagRunOperator triggers is a manual run.
        if AIRFLOW >= (3, 3) and "manual" in run_types:
            found["allowed_run_types"].append("operator_triggered")
    if AIRFLOW >= (3, 3):
        # A task that is cleared after a new DAG version was deployed must run the new version.
        found["rerun_with_latest_version"] = True
    return found


def retry_arguments(policy: RetryPolicy) -> dict[str, Any]:
    """Return the arguments of a task for pauses that double, and for the policy if this version has policies."""
    # Before 3.2 it is a flag, and pauses always double.
    found: dict[str, Any] = {"retry_exponential_backoff": 2.0 if AIRFLOW >= (3, 2) else True}
    return found | ({"retry_policy": policy} if HAS_RETRY_POLICIES else {})


def spark_arguments() -> dict[str, Any]:
    """Return the arguments of a Spark task whose driver is on the machine of the task."""
    # Durable tasks reattach to a driver on a cluster. Before 3.3 no task is durable, and the argument logs a warning.
    return {"durable": False} if AIRFLOW >= (3, 3) else {}


def config_value(section: str, key: str) -> str:
    """Return a value of Airflow's configuration; empty if it has none."""
    module: Any = import_module("airflow.sdk.configuration" if AIRFLOW >= (3, 2) else "airflow.configuration")
    return str(module.conf.get(section, key, fallback=None) or "")


def stats_client() -> Any:
    """Return Airflow's metrics: an object with `gauge`, `incr` and `timing`."""
    module: Any = import_module("airflow.sdk.observability.stats" if AIRFLOW >= (3, 2) else "airflow.stats")
    return module if AIRFLOW >= (3, 3) else module.Stats


def open_dag_bag(folder: str | Path) -> Any:
    """Return the DAGs of the files in a folder, as Airflow's DagBag."""
    module: Any = import_module("airflow.dag_processing.dagbag" if AIRFLOW >= (3, 2) else "airflow.models.dagbag")
    return module.DagBag(folder)


def team_names(dag_ids: Collection[str]) -> Mapping[str, str | None]:
    """Return the names of the teams of DAGs, by DAG id. Airflow 3.1 has no teams of DAGs."""
    if AIRFLOW < (3, 2):
        return {}
    from airflow.models.dag import DagModel

    return DagModel.get_dag_id_to_team_name_mapping(list(dag_ids))


def flag_field(dag: DAG, name: str) -> Any:
    """Return a flag of a DAG's form, off by default, as an argument of tasks."""
    field: Any = dag.param(name)
    if AIRFLOW < (3, 2):
        field._default = False  # 3.1 cannot serialize a field without a default
    return field
