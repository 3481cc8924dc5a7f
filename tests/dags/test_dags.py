"""The DAGs of a configuration, as Airflow reads them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.versions import AIRFLOW, HAS_RUN_TYPES, ParamValidationError, open_dag_bag
from loader.resources import folder
from tests.dags.conftest import Configure, source_table
from tests.dags.notifiers import FileNotifier
from tests.docs.pages import write_dag_files

DAGS = {
    "shop.initial_load": {
        "read_tables": {"load_tables", "check_tables"},
        "load_tables": {"check_tables"},
        "check_tables": set(),
    },
    "shop.delta": {
        "plan_interval": {"extract", "materialise", "check_runway"},
        "extract": {"materialise", "check_tables"},
        "materialise": {"check_tables"},
        "check_tables": set(),
        "check_runway": set(),
    },
    "shop.maintain": {"maintain": set(), "purge": set()},
    "shop.replay": {
        "restore_files": {"compare"},
        "compare": {"approve", "publish"},
        "approve": {"publish"},
        "publish": set(),
    },
    "shop.repair": {
        "choose_repair": {
            "release",
            "pause",
            "resume",
            "restore",
            "follow",
            "set_schema",
            "stage_rows",
            "begin",
            "read_tables_again",
            "approve_skip",
            "withdraw_skip",
        },
        "release": set(),
        "pause": set(),
        "resume": set(),
        "restore": set(),
        "follow": set(),
        "set_schema": set(),
        "stage_rows": set(),
        "begin": set(),
        "read_tables_again": {"load_tables", "check_tables"},
        "load_tables": {"check_tables"},
        "check_tables": set(),
        "approve_skip": {"skip"},
        "skip": set(),
        "withdraw_skip": set(),
    },
    "shop.check": {"check_source": {"verify"}, "verify": set()},
}


@pytest.fixture(params=sorted(DAGS))
def dag(request: pytest.FixtureRequest, dags: Any) -> DAG:
    return dags.dags[request.param]


def test_every_file_can_be_imported(dags: Any) -> None:
    assert dags.import_errors == {}
    assert set(dags.dags) == set(DAGS)


def test_tasks_follow_each_other(dag: DAG) -> None:
    assert {task.task_id: task.downstream_task_ids for task in dag.tasks} == DAGS[dag.dag_id]


def test_a_dag_goes_on_after_a_failed_run_that_can_be_cleared(dag: DAG) -> None:
    assert dag.max_active_runs == (8 if dag.dag_id == "shop.repair" else 1)
    assert dag.max_consecutive_failed_dag_runs == 0
    assert not any(task.depends_on_past or task.wait_for_downstream for task in dag.tasks)
    assert AIRFLOW < (3, 3) or dag.rerun_with_latest_version is True


def test_the_configuration_lets_dags_pause_themselves(configured: Configure) -> None:
    bag = configured(source_table("shop") + "airflow.pause_on_failure = true\n" + source_table("crm"))
    for dag in bag.dags.values():
        assert dag.max_consecutive_failed_dag_runs == (1 if dag.dag_id.startswith("shop.") else 0)
    for source, pauses in (("shop", True), ("crm", False)):
        runway = bag.dags[f"{source}.delta"].get_task("check_runway")
        assert (runway.is_teardown, runway.on_failure_fail_dagrun) == (pauses, False)


def run_types(dag: DAG) -> set[str]:
    """Types of runs that a DAG accepts with any schedule. The first task of a delta refuses backfills."""
    triggered = {"manual", "operator_triggered"} if AIRFLOW >= (3, 3) else {"manual"}
    return triggered | ({"backfill"} if dag.dag_id == "shop.delta" else set())


def test_dates_find_no_work(dag: DAG) -> None:
    assert dag.catchup is False
    assert not HAS_RUN_TYPES or dag.allowed_run_types == {"scheduled"} | run_types(dag)


def test_the_delta_runs_every_five_minutes(dags: Any) -> None:
    schedules = {dag.dag_id: dag.schedule for dag in dags.dags.values()}
    assert schedules == dict.fromkeys(DAGS) | {"shop.delta": timedelta(minutes=5), "shop.maintain": "@daily"}


def test_a_dag_tells_what_it_is_and_whose(dag: DAG) -> None:
    assert dag.doc_md is not None
    assert "**When it fails.**" in dag.doc_md
    assert "SOURCE" not in dag.doc_md
    assert dag.tags == {"binlog-loader", "shop", dag.dag_id.partition(".")[2]}
    assert {task.owner for task in dag.tasks} == {"data-platform"}


def test_retries_wait_longer_each_time(dag: DAG) -> None:
    for task in dag.tasks:
        assert (task.retries, task.retry_exponential_backoff) == (5, 2.0 if AIRFLOW >= (3, 2) else True)
        assert task.max_retry_delay == timedelta(minutes=10)


def test_no_task_runs_for_ever(dag: DAG) -> None:
    hours = {"shop.delta": 2, "shop.initial_load": 48, "shop.maintain": 12, "shop.replay": 48, "shop.repair": 48}
    hours["shop.check"] = 2
    assert {task.execution_timeout for task in dag.tasks} == {timedelta(hours=hours[dag.dag_id])}


def test_what_is_scarce_has_a_pool(dag: DAG) -> None:
    for task in dag.tasks:
        spark = isinstance(task, SparkSubmitOperator)
        use = "load" if task.task_id == "read_tables" and dag.dag_id == "shop.initial_load" else "spark"
        assert task.pool == (f"shop.{use}" if spark or task.task_id == "check_source" else "default_pool")


def test_spark_is_started_by_our_operator_alone(dag: DAG) -> None:
    spark = [task for task in dag.tasks if isinstance(task, SparkSubmitOperator)]
    assert all(isinstance(task, LoaderSparkOperator) for task in spark)


@pytest.mark.parametrize(
    "tables", [None, [], ["shop.orders"], ["shop.orders.bak", "crm.größe x", "`a.b`.t"], [" shop.a\r", ""]]
)
def test_tables_of_the_initial_load(dags: Any, tables: list[str] | None) -> None:
    assert _validated(dags.dags["shop.initial_load"], tables=tables) == {"tables": tables}


@pytest.mark.parametrize("tables", ["shop.orders", ["orders"], ["shop."], ["shop. "], [".orders"], ["`a.b.c"], [3]])
def test_wrong_tables_are_refused(dags: Any, tables: object) -> None:
    with pytest.raises(ParamValidationError):
        _validated(dags.dags["shop.initial_load"], tables=tables)


def test_a_field_that_was_cleared_is_taken(dags: Any) -> None:
    """A form sends null for it."""
    given = _validated(dags.dags["shop.replay"], logpos=None, tables=None)
    flags = {"restore_files": False, "dry_run": True, "approval": False}
    assert given == {"from": None, "lognum": 54, "logpos": None, "to": None, "tables": None, **flags}


def test_the_tasks_of_the_page_of_dags_are_those_of_the_dags() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "dags.md").read_text(encoding="utf-8")
    tasks = page.partition("\n## Tasks\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", tasks, re.MULTILINE)) == {
        task for tasks in DAGS.values() for task in tasks
    }


# What the configuration says.


def test_every_source_has_dags_of_its_own(configured: Configure) -> None:
    bag = configured(source_table("shop") + source_table('"my shop"'))
    assert set(bag.dags) == set(DAGS) | {name.replace("shop.", "my-20-shop.") for name in DAGS}
    assert bag.dags["my-20-shop.delta"].dag_display_name == "my shop.delta"
    for dag in bag.dags.values():
        source = "my shop" if dag.dag_id.startswith("my") else "shop"
        spark = [task for task in dag.tasks if isinstance(task, LoaderSparkOperator)]
        assert {task.source for task in spark} <= {source}
        # A pool that two sources share would let one wait for the other.
        key = dag.dag_id.partition(".")[0]
        assert {task.pool for task in dag.tasks} <= {"default_pool", f"{key}.spark", f"{key}.load"}


@pytest.mark.parametrize(
    ("starting", "sources"),
    [
        ("shop.delta", {"shop"}),
        ("my-20-shop.repair", {"my-20-shop"}),
        ("shop.v2.check", {"shop.v2"}),
        ("crm.delta", {"shop", "my-20-shop", "shop.v2"}),
        ("shop.marts", {"shop", "my-20-shop", "shop.v2"}),
        ("marts", {"shop", "my-20-shop", "shop.v2"}),
    ],
)
def test_the_start_of_a_task_makes_the_dags_of_its_source(
    starting: str, sources: set[str], configured: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DAG of somebody else in the same file gets all of them."""
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", starting)
    bag = configured(source_table("shop") + source_table('"my shop"') + source_table('"shop.v2"'))
    assert bag.import_errors == {}
    assert set(bag.dags) == {name.replace("shop.", f"{source}.") for source in sources for name in DAGS}


def test_settings_of_a_source_reach_its_dags(configured: Configure) -> None:
    text = """
        airflow.owner = "shop-team"
        airflow.tags = ["gold"]
        airflow.schedule = { delta = "10 * * * *", maintain = "" }
        airflow.timeout_hours = { delta = 0.5 }
        airflow.retries = 2
        airflow.pool = "small"
        airflow.queue = "spark-workers"
        airflow.executor = "LocalExecutor"
        airflow.notifier = { type = "tests.dags.notifiers.FileNotifier", arguments = { file = "f", text = "{{ ti }}" } }
    """
    delta = configured(source_table("shop") + text).dags["shop.delta"]
    assert delta.schedule == "10 * * * *"
    assert "gold" in delta.tags
    for task in delta.tasks:
        assert (task.owner, task.retries, task.queue) == ("shop-team", 2, "spark-workers")
        assert (task.executor, task.execution_timeout) == ("LocalExecutor", timedelta(minutes=30))
        (callback,) = task.on_failure_callback
        assert (callback.source, task.on_success_callback[0].source) == ("shop", "shop")
        notifier = callback.notifier
        assert isinstance(notifier, FileNotifier)
        assert notifier.text == "{{ ti }}"
    assert delta.get_task("extract").pool == "small"
    assert configured(source_table("shop") + text).dags["shop.maintain"].schedule is None


@pytest.mark.parametrize(("asset", "key"), [("crm_done", {"name": "crm_done"}), ("s3://a/b", {"uri": "s3://a/b"})])
def test_a_delta_can_follow_an_asset(asset: str, key: dict[str, str], configured: Configure) -> None:
    text = f'airflow.schedule.delta = "asset:{asset}"\n'
    dag = configured(source_table("shop") + text).dags["shop.delta"]
    (found,) = dag.schedule
    assert {name: getattr(found, name) for name in key} == key
    assert not HAS_RUN_TYPES or dag.allowed_run_types == {"asset_triggered"} | run_types(dag)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, ["there is no configuration", "what to do: write one with loader init"]),
        ("[sources", ["the configuration cannot be read", "Expected ']'"]),
        (source_table("shop") + 'airflow.schedle = ""', ["the configuration is wrong", "did you mean schedule?"]),
        (source_table("shop") + 'airflow.schedule.delta = "5 minutes"', ["write an interval (5m, 2h, 1d)"]),
        (
            source_table("shop") + 'airflow.notifier.type = "no.such.Class"',
            ["the notifier cannot be created", "no.such"],
        ),
        (
            source_table("shop") + 'airflow.notifier.arguments = { password = "x" }',
            ["arguments have secrets: password"],
        ),
        (
            source_table("shop") + 'airflow.notifier.arguments = { http = [{ headers = { "api-key" = "x" } }] }',
            ["arguments have secrets: api-key"],
        ),
        (source_table("shop") + 'airflow.schedule.delta = "99999999999d"', ["write an interval (5m, 2h, 1d)"]),
        (source_table("shop") + "airflow.timeout_hours.delta = 1e12", ["timeout_hours.delta", "less than or equal"]),
        (
            source_table('"my shop"') + source_table('"my-20-shop"'),
            ["two sources have the same ids of DAGs", "my shop and my-20-shop", "rename one"],
        ),
    ],
)
def test_a_wrong_configuration_is_one_import_error(
    text: str | None, says: list[str], configured: Configure, tmp_path: Path
) -> None:
    bag = configured(text)
    assert not bag.dags
    (error,) = bag.import_errors.values()
    assert [part for part in says if part not in error] == []
    assert "During handling" not in error
    assert "direct cause" not in error
    assert error.count("  File ") <= 2


_PARSE = """
import json, socket, sys, time
import airflow.providers.apache.spark.operators.spark_submit, airflow.sdk
def refuse(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo"}:
        raise RuntimeError(event)
sys.addaudithook(refuse)
began = time.process_time()
from loader.airflow.dags.source_dags import source_dags
count, ours = len(source_dags()), time.process_time() - began
from airflow.providers.standard.operators.empty import EmptyOperator
began = time.process_time()
for number in range(count):
    with airflow.sdk.DAG(f"plain{number}"):
        [EmptyOperator(task_id=f"task{place}") for place in range(5)]
print(json.dumps([count, ours, time.process_time() - began]))
"""


def test_fifty_sources_are_read_within_a_second_and_without_a_connection(configured: Configure, tmp_path: Path) -> None:
    """The imports of Airflow and of its Spark operator are not counted: every DAG file with a Spark task has them."""
    configured("".join(source_table(f"shop{number}") for number in range(50)), parse=False)
    done = subprocess.run([sys.executable, "-c", _PARSE], check=True, capture_output=True, text=True)
    count, seconds, plain = json.loads(done.stdout.splitlines()[-1])
    assert count == 50 * len(DAGS)
    assert seconds < 1 or seconds < 3 * plain  # on a slow machine, or a busy one


def test_a_dag_file_of_ones_own(configured: Configure, tmp_path: Path) -> None:
    """The examples of the page about Airflow."""
    dags = tmp_path / "dags"
    dags.mkdir()
    write_dag_files(dags)
    configured(source_table("shop") + source_table("crm"), parse=False)
    bag = open_dag_bag(dags)
    assert bag.import_errors == {}
    own = {"shop_and_marts", "shop_correct", "orders_mart", "orders_report"}
    assert own | {"shop.delta", "shop.replay"} <= set(bag.dags)
    assert not [name for name in bag.dags if name.startswith("crm.")]


def test_the_dag_file_of_the_wheel_is_one() -> None:
    assert [path.name for path in folder("dags").glob("*.py")] == ["binlog_loader.py"]


def _validated(dag: DAG, **conf: object) -> dict[str, Any]:
    """What a run with this conf is given."""
    params = deepcopy(dag.params)
    needed = {name: value for name, value in (("lognum", 54), ("action", "release")) if name in params}
    params.update(needed | conf)
    return params.validate()
