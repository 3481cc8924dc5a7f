"""The DAG files as Airflow reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from loader.airflow.defaults import tasks
from loader.airflow.operators import LoaderSparkOperator

DAGS = {
    "initial_load": {
        "read_tables": {"load_tables", "check_tables"},
        "load_tables": {"check_tables"},
        "check_tables": set(),
    },
    "continuous_delta": {
        "plan_interval": {"extract", "check_runway"},
        "extract": {"materialise", "check_tables"},
        "materialise": {"check_tables"},
        "check_tables": set(),
        "check_runway": set(),
    },
    "maintain_tables": {"maintain": set(), "purge": set()},
    "replay_binlog": {"replay": set()},
}

_POOLS = {"plan_interval": "mysql_source"} | dict.fromkeys(("check_tables", "check_runway", "purge"), "default_pool")
_ONE = "[sources.shop]\n"
_TWO = "[sources.shop]\n[sources.crm]\n"


@pytest.fixture(params=sorted(DAGS))
def dag(request: pytest.FixtureRequest, dags: DagBag) -> DAG:
    return dags.dags[request.param]


def test_every_file_can_be_imported(dags: DagBag) -> None:
    assert dags.import_errors == {}
    assert set(dags.dags) == set(DAGS)


def test_tasks_follow_each_other(dag: DAG) -> None:
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == DAGS[dag.dag_id]


def test_a_dag_goes_on_after_a_failed_run_that_can_be_cleared(dag: DAG) -> None:
    assert dag.max_active_runs == 1
    assert dag.max_consecutive_failed_dag_runs == 0
    assert not any(task.depends_on_past or task.wait_for_downstream for task in dag.tasks)
    assert dag.rerun_with_latest_version is True


def test_the_configuration_lets_dags_pause_themselves(configured: Configure) -> None:
    for pauses, runs in (("true", 1), ("false", 0)):
        bag = configured(f"{_TWO}airflow.pause_on_failure = {pauses}\n")
        assert {dag.max_consecutive_failed_dag_runs for dag in bag.dags.values()} == {runs}
        runway = bag.dags["continuous_delta"].get_task("check_runway")
        assert (runway.is_teardown, runway.on_failure_fail_dagrun) == (pauses == "true", False)


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


@pytest.mark.parametrize("tables", [None, [], ["shop.orders"], ["shop.orders", "crm.größe x"]])
def test_tables_of_the_initial_load(dags: DagBag, tables: list[str] | None) -> None:
    assert _validated(dags.dags["initial_load"], tables=tables) == {"source": None, "tables": tables}


@pytest.mark.parametrize("tables", ["shop.orders", ["orders"], ["a.b.c"], [3]])
def test_wrong_tables_are_refused(dags: DagBag, tables: object) -> None:
    with pytest.raises(ParamValidationError):
        _validated(dags.dags["initial_load"], tables=tables)


def test_a_field_that_was_cleared_is_taken(dags: DagBag) -> None:
    """A form sends null for it."""
    given = _validated(dags.dags["replay_binlog"], source=None, logpos=None, tables=None)
    assert given == {"source": None, "lognum": 54, "logpos": None, "tables": None, "dry_run": True}


# The form's source.

SCHEDULED = {"continuous_delta", "maintain_tables"}


def test_a_source_is_a_string(dag: DAG) -> None:
    assert _validated(dag, source="shop")["source"] == "shop"
    with pytest.raises(ParamValidationError):
        _validated(dag, source=3)


@pytest.mark.parametrize("text", [_ONE, "[sources.shop]\nport = 'wrong'\nno_such_key = 1"])
def test_the_only_source_is_chosen(text: str, configured: Configure) -> None:
    for dag in configured(text).dags.values():
        assert _validated(dag)["source"] == "shop"
        with pytest.raises(ParamValidationError):
            _validated(dag, source="shpo")


def test_of_several_sources_one_is_to_be_chosen(configured: Configure) -> None:
    bag = configured(_TWO)
    for name, dag in bag.dags.items():
        assert dag.params.get_param("source").schema["enum"] == [*([None] if name in SCHEDULED else []), "shop", "crm"]
        assert _validated(dag, source="crm")["source"] == "crm"
        if name in SCHEDULED:  # nobody fills in the form of such a run
            assert _validated(dag)["source"] is None
        else:
            with pytest.raises(ParamValidationError, match="No value passed"):
                _validated(dag)


def test_the_environment_chooses_one_of_several_sources(configured: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADER_SOURCE", "crm")
    assert {_validated(dag)["source"] for dag in configured(_TWO).dags.values()} == {"crm"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "There is no configuration at "),
        ("[sources", "cannot be read: Expected ']'"),
        ("sources = 3", "has no [sources.NAME]"),
    ],
)
def test_a_faulty_configuration_is_told_by_the_form(text: str | None, why: str, configured: Configure) -> None:
    for dag in configured(text).dags.values():
        source = dag.params.get_param("source")
        assert why in (source.description or "")
        assert _validated(dag)["source"] is None


Configure = Callable[[str | None], DagBag]


@pytest.fixture
def configured(airflow_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """A function that writes the configuration and parses the DAG files."""

    def parse(text: str | None) -> DagBag:
        file = tmp_path / "loader.toml"
        if text is not None:
            file.write_text(text, encoding="utf-8")
        monkeypatch.setenv("LOADER_CONFIG", str(file))
        bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
        assert bag.import_errors == {}
        return bag

    return parse


def _validated(dag: DAG, **conf: object) -> dict[str, Any]:
    """What a run with this conf is given."""
    params = deepcopy(dag.params)
    needed = {name: 54 for name in ("lognum",) if name in params}
    params.update(needed | conf)
    return params.validate()
