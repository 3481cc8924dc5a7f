"""The DAG files as Airflow reads them."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from loader.airflow.defaults import tasks
from loader.airflow.operators import LoaderSparkOperator

DAGS = {
    "initial_load": {"snapshot": {"load"}, "load": set()},
    "continuous_delta": {
        "snapshot_position": {"extract", "check_runway"},
        "extract": {"materialise"},
        "materialise": set(),
        "check_runway": set(),
    },
    "maintain_tables": {"maintain": set(), "purge": set()},
    "replay_binlog": {"replay": set()},
}

_POOLS = {"snapshot_position": "mysql_source", "check_runway": "default_pool", "purge": "default_pool"}


@pytest.fixture(params=sorted(DAGS))
def dag(request: pytest.FixtureRequest, dags: DagBag) -> DAG:
    return dags.dags[request.param]


def test_every_file_can_be_imported(dags: DagBag) -> None:
    assert dags.import_errors == {}
    assert set(dags.dags) == set(DAGS)


def test_tasks_follow_each_other(dag: DAG) -> None:
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == DAGS[dag.dag_id]


def test_a_failure_stops_the_dag_and_can_be_cleared(dag: DAG) -> None:
    assert dag.max_active_runs == 1
    assert dag.max_consecutive_failed_dag_runs == 1
    assert not any(task.depends_on_past or task.wait_for_downstream for task in dag.tasks)
    assert dag.rerun_with_latest_version is True


def test_dates_find_no_work(dag: DAG) -> None:
    assert dag.catchup is False
    assert dag.allowed_run_types == {"scheduled", "manual"}


def test_the_delta_runs_every_five_minutes(dags: DagBag) -> None:
    assert dags.dags["continuous_delta"].schedule == timedelta(minutes=5)
    assert dags.dags["initial_load"].schedule is None
    assert dags.dags["maintain_tables"].schedule == "@daily"
    assert dags.dags["replay_binlog"].schedule is None


def test_a_dag_tells_what_it_is_and_whose(dag: DAG) -> None:
    assert dag.doc_md is not None
    assert "**When it fails.**" in dag.doc_md
    assert "binlog-loader" in dag.tags
    assert {task.owner for task in dag.tasks} == {"data-platform"}


def test_retries_wait_longer_each_time(dag: DAG) -> None:
    for task in dag.tasks:
        assert (task.retries, task.retry_exponential_backoff) == (5, 2.0)
        assert task.max_retry_delay == timedelta(minutes=10)


def test_no_task_runs_for_ever(dag: DAG) -> None:
    hours = {"continuous_delta": 2, "initial_load": 48, "maintain_tables": 12, "replay_binlog": 48}
    assert {task.execution_timeout for task in dag.tasks} == {timedelta(hours=hours[dag.dag_id])}


def test_the_environment_says_how_long_a_task_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADER_TASK_HOURS", "0.5")
    assert tasks(hours=2)["execution_timeout"] == timedelta(minutes=30)


def test_what_is_scarce_has_a_pool(dag: DAG) -> None:
    for task in dag.tasks:
        spark = isinstance(task, SparkSubmitOperator)
        assert task.pool == ("spark" if spark else _POOLS[task.task_id])


def test_spark_is_started_by_our_operator_alone(dag: DAG) -> None:
    assert {type(task) for task in dag.tasks if isinstance(task, SparkSubmitOperator)} <= {LoaderSparkOperator}


@pytest.mark.parametrize("tables", [[], ["shop.orders"], ["shop.orders", "crm.größe x"]])
def test_tables_of_the_initial_load(dags: DagBag, tables: list[str]) -> None:
    assert _validated(dags.dags["initial_load"], tables=tables) == {"source": "", "tables": tables}


@pytest.mark.parametrize("tables", ["shop.orders", ["orders"], ["a.b.c"], [3], None])
def test_wrong_tables_are_refused(dags: DagBag, tables: object) -> None:
    with pytest.raises(ParamValidationError):
        _validated(dags.dags["initial_load"], tables=tables)


def test_a_source_is_a_string(dag: DAG) -> None:
    assert _validated(dag, source="shop")["source"] == "shop"
    with pytest.raises(ParamValidationError):
        _validated(dag, source=3)


def _validated(dag: DAG, **conf: object) -> dict[str, Any]:
    """What a run with this conf is given."""
    params = deepcopy(dag.params)
    needed = {name: 54 for name in ("lognum",) if name in params}
    params.update(needed | conf)
    return params.validate()
