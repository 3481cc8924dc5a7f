"""Operators for your own DAG files: defaults from the configuration, the work of each, and failures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.execution_time.context import OutletEventAccessors

import loader.airflow
from loader import pipeline
from loader.airflow import BinlogDeltaOperator, InitialLoadOperator, ReplayOperator
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.reports.errors import RetryWhereItHelps, TaskFailed
from loader.airflow.stages.template_values import flag, table_names
from loader.airflow.versions import HAS_RETRY_POLICIES
from loader.errors import DataError, RetryableError, SourceUnavailable, UsageError
from loader.initial_load.spec import InitialLoadResult, TableLoad
from loader.materialise.spec import TableResult
from loader.pipeline import IntervalChosen
from loader.source.retention import Runway
from tests.dags.conftest import Configure, Site, SparkSubmit, Task, source_table
from tests.dags.operators import connect, publish
from tests.dags.tasks.test_merge_handover import APPLIED, merged

OPERATORS: dict[type[Any], dict[str, str]] = {
    BinlogDeltaOperator: {},
    InitialLoadOperator: {},
    ReplayOperator: {"start": "begin"},
}


def test_the_package_has_what_it_promises() -> None:
    for name in loader.airflow.__all__:
        assert getattr(loader.airflow, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = loader.airflow.Nothing


# What a DAG file leaves out.


@pytest.mark.parametrize("kind", OPERATORS)
def test_defaults_are_those_of_the_source(kind: type[Any], configured: Configure) -> None:
    text = 'airflow.pool = "small"\nairflow.retries = 2\nairflow.owner = "team"\nairflow.queue = "spark"\n'
    configured(source_table("shop") + text, parse=False)
    with DAG("own", schedule=None):
        task = kind(task_id="task", source="shop", **OPERATORS[kind])
    hours = 2 if kind is BinlogDeltaOperator else 48
    assert (task.pool, task.retries, task.owner, task.queue) == ("small", 2, "team", "spark")
    assert task.execution_timeout == timedelta(hours=hours)
    assert task.outlets == [tables_alias("shop")]
    assert not HAS_RETRY_POLICIES or isinstance(task.retry_policy, RetryWhereItHelps)


def test_a_dag_and_a_task_override_them(configured: Configure) -> None:
    configured(source_table("shop"), parse=False)
    with DAG("own", schedule=None, default_args={"pool": "mine", "retries": 1}):
        task = BinlogDeltaOperator(task_id="task", source="shop", retries=7, outlets=[tables_alias("more")])
    assert (task.pool, task.retries, task.owner) == ("mine", 7, "data-platform")
    assert task.outlets == [tables_alias("more"), tables_alias("shop")]
    assert BinlogDeltaOperator(task_id="alone", source="shop").pool == "shop.spark"


@pytest.mark.parametrize("source", ["crm", "{{ params.source }}"])
def test_an_unknown_source_is_an_import_error(source: str, configured: Configure) -> None:
    configured(source_table("shop"), parse=False)
    with pytest.raises(UsageError, match=r"there is no source(.|\n)*name one of shop"):
        BinlogDeltaOperator(task_id="task", source=source)


@pytest.mark.parametrize(
    ("value", "means"),
    [(True, True), (False, False), (None, False), ("True", True), (" false", False), ("None", False), ("", False)],
)
def test_a_flag_may_be_the_text_of_a_template(value: object, means: bool) -> None:
    assert flag("now", value) is means


def test_other_values_of_templates_are_refused() -> None:
    with pytest.raises(UsageError, match=r"publish must be true or false(.|\n)*'yes'"):
        flag("publish", "yes")
    with pytest.raises(UsageError, match="tables must be a list"):
        table_names("['shop.orders']")
    assert (table_names(None), table_names(("shop.orders",))) == ([], ["shop.orders"])


# A delta.


@pytest.fixture
def planned(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Plan the interval of the site without asking the server. The list gets the name of each run."""
    runs: list[str] = []
    plan_of(site, monkeypatch, runs)
    return runs


def plan_of(site: Site, monkeypatch: pytest.MonkeyPatch, runs: list[str]) -> None:
    chosen = IntervalChosen(
        source="shop", generation="0001", start=site.plan.start, stop=site.plan.stop, new=True, **site.interval
    )

    def choose(_: object, run: str, until: object) -> IntervalChosen:
        runs.append(run)
        return chosen

    monkeypatch.setattr(pipeline, "plan_interval", choose)
    monkeypatch.setattr(pipeline, "list_tables", lambda _: None)
    monkeypatch.setattr(pipeline, "source_runway", lambda _: Runway(file="binlog.000001", hours=5.5, rule="age"))
    monkeypatch.setattr(pipeline, "find_unloaded", lambda *_: ())


def delta(running: Task, **arguments: Any) -> dict[str, Any]:
    accessors = OutletEventAccessors()
    task = BinlogDeltaOperator(task_id="task", source="shop", **arguments)
    try:
        return task.execute({**running.context, "task": task, "outlet_events": accessors})
    finally:
        found = accessors[tables_alias("shop")].asset_alias_events
        running.xcoms["events"] = {event.dest_asset_key.name: event.extra["inserts"] for event in found}
        lineage = task.get_openlineage_facets_on_complete(None)
        running.xcoms["lineage"] = [one.name for one in lineage.inputs] if lineage else []


def on_cluster(site: Site, program: SparkSubmit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the application stage the interval of the site, and merge it."""
    connect(monkeypatch, conn_type="spark", host="yarn")
    merged(program, APPLIED)
    submitted = SparkSubmit.__call__

    def stages(program: SparkSubmit, argv: list[str], **more: Any) -> SparkSubmit:
        site.stage()
        publish(site, site.plan.stop)
        return submitted(program, argv, **more)

    monkeypatch.setattr(SparkSubmit, "__call__", stages)


def test_on_a_cluster_a_delta_is_one_application(
    planned: list[str], site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    on_cluster(site, spark_submit_program, monkeypatch)
    result = delta(running, now="True")
    assert (spark_submit_program.argv or [""])[-5].endswith("delta/job.py")
    assert spark_submit_program.spec["materialise"]["now"] is True
    assert result == {
        "start": site.plan.start,
        "stop": site.plan.stop,
        "stop_seqno": site.plan.stop_seqno,
        "caught_up": True,
        "tables": [APPLIED.model_dump(mode="json")],
        "published": result["published"],
        "exit_code": 0,
    }
    assert (running.xcoms["events"], running.xcoms["lineage"]) == ({"lake.shop.orders": 3}, ["shop.orders"])
    assert running.xcoms["note"].startswith("binlog.000001:4 to binlog.000001:100; 3 inserted, 0 updated")
    assert "will purge a log file that is still needed in 5.5 hours" in capsys.readouterr().out
    assert planned == ["shop.delta/manual__1/task/-1"]


def test_an_interval_that_cannot_be_staged_fails_the_task_after_those_before_it(
    planned: list[str], site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    interval = site.interval | {"through_seqno": site.plan.stop_seqno + 100}
    monkeypatch.setattr(Site, "interval", interval)
    plan_of(site, monkeypatch, [])
    on_cluster(site, spark_submit_program, monkeypatch)
    down = SourceUnavailable("the server does not answer", hint="start it")
    assert spark_submit_program.result
    spark_submit_program.result["failed"] = down.as_dict()
    with pytest.raises(TaskFailed, match="the server does not answer") as caught:
        delta(running)
    assert caught.value.retry
    assert running.xcoms["events"] == {"lake.shop.orders": 3}
    assert "planned intervals are left" in capsys.readouterr().out


def test_a_retry_finds_what_is_done(
    planned: list[str], site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    publish(site, site.plan.stop)
    running.try_number = 2
    result = delta(running)
    assert spark_submit_program.argv is None
    assert [table["status"] for table in result["tables"]] == ["already"]
    assert planned == ["shop.delta/manual__1/task/-1"]


def test_a_log_without_news_is_a_success(
    planned: list[str],
    running: Task,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    spark_submit_program: SparkSubmit,
) -> None:
    monkeypatch.setattr(pipeline, "plan_interval", lambda *_, **__: None)
    site.stage()
    generation = site.chain.require_generation()
    assert delta(running) == {
        "start": generation.start, "stop": generation.start, "caught_up": True, "tables": [],
        "stop_seqno": generation.start_position.seqno(generation.shift),
    }  # fmt: skip
    assert spark_submit_program.argv is None


BAD = DataError("an invalid date", hint="loader release shop.items", table="shop.items")
DOWN = RetryableError("the catalog does not answer", hint="wait")


@pytest.mark.parametrize(
    ("error", "fails_by_itself", "fails_else", "retry"), [(BAD, True, False, False), (DOWN, True, True, True)]
)
def test_a_table_fails_the_task_after_all_others_are_done(
    error: Any,
    fails_by_itself: bool,
    fails_else: bool,
    retry: bool,
    planned: list[str],
    site: Site,
    spark_submit_program: SparkSubmit,
    running: Task,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.stage()
    site.follow_up("binlog.000001:200", "barrier")
    site.quarantine("shop.items")
    running.dag_id = "shop_and_marts"
    failed = TableResult(table="shop.items", status="failed", error=error.as_dict())
    spark_submit_program.result = {"tables": [table.model_dump(mode="json") for table in (failed, APPLIED)]}
    for fail_on_tables, fails in ((True, fails_by_itself), (False, fails_else)):
        if not fails:
            assert len(delta(running, fail_on_tables=fail_on_tables)["tables"]) == 2
            continue
        with pytest.raises(TaskFailed, match=r"1 of 2 tables failed \(tables shop.items\)") as caught:
            delta(running, fail_on_tables=fail_on_tables)
        assert caught.value.retry is retry
        assert running.xcoms["note"]
        assert running.xcoms["events"] == {"lake.shop.orders": 3}
    assert error is DOWN or "in Airflow: trigger shop.repair with action = release" in caplog.text


# An initial load.


def load(running: Task, **arguments: Any) -> dict[str, Any]:
    running.outlets = []
    return InitialLoadOperator(task_id="task", source="shop", **arguments).execute(running.context)


def test_a_load_reads_and_loads_in_one_application(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    error = DataError("a table of engine X is not supported", hint="exclude it", table="shop.bad").as_dict()
    read = InitialLoadResult(
        tables=(
            TableLoad(table="shop.bad", status="failed", error=error),
            TableLoad(table="shop.orders", status="staged", rows=3, manifest="shop/load/m.json"),
        )
    ).model_dump(mode="json")
    spark_submit_program.result = {"read": read, "load": {"tables": [APPLIED.model_dump(mode="json")]}}
    result = load(running, tables=["shop.orders", "shop.bad"], fail_on_tables=False)
    assert {table["table"]: table["status"] for table in result["tables"]} == {
        "shop.bad": "failed", "shop.orders": "applied"
    }  # fmt: skip
    assert (spark_submit_program.argv or [""])[-5].endswith("full_load/job.py")
    assert spark_submit_program.spec["read"]["only"] == ["shop.orders", "shop.bad"]
    with pytest.raises(TaskFailed, match="1 of 2 tables failed"):
        load(running)
    with pytest.raises(TaskFailed, match="again must be true or false"):
        load(running, again="perhaps")


def test_a_load_that_is_done_starts_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loader.airflow import finished_work
    from loader.materialise.load.load_notes import note_loaded
    from loader.materialise.spec import LoadSpec

    settings = loader.airflow.sources.settings_of("shop")
    job: Any = pipeline.load_tables_job(settings, ())
    spec: LoadSpec = job.spec
    one = TableLoad(table="shop.orders", status="already", manifest="shop/load/m.json")
    note_loaded(site.chain.store, spec.source, spec.catalog, APPLIED.table, APPLIED.position, one.manifest)
    monkeypatch.setattr(finished_work, "find_staged_loads", lambda _: InitialLoadResult(tables=(one,)))
    assert [table["status"] for table in load(running)["tables"]] == ["already"]
    assert spark_submit_program.argv is None


# A replay.


@pytest.mark.parametrize(("publish_", "published"), [(False, False), ("True", True), ("False", False)])
def test_a_replay(
    publish_: object, published: bool, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    task = ReplayOperator(
        task_id="task", source="shop", start="1:4", end="1:90", tables=["shop.o*"], publish=publish_, approved_by="ada"
    )
    task.execute(running.context)
    spec = spark_submit_program.spec
    assert (spec["since_seqno"], spec["until_seqno"]) == (1_000_000_000_004, 1_000_000_000_090)
    assert spec["tables"] == ["shop.o*"]
    assert (spec["publish"], spec["approved_by"]) == (published, "ada")


def test_a_replay_first_restores_files(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.stage()
    restored: list[int] = []

    def restore(_: object, spec: Any) -> Any:
        restored.append(spec.start_seqno)
        return type("Result", (), {"model_dump": lambda *_, **__: {"files": 2}})()

    monkeypatch.setattr("loader.extract.extraction.restore", restore)
    task = ReplayOperator(task_id="task", source="shop", start="begin", restore_files="True")
    task.execute(running.context)
    assert restored == [1_000_000_000_004]
    assert (spark_submit_program.argv or [""])[-5].endswith("replay_job.py")


def test_the_conf_of_a_users_dag_is_its_own(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    running.conf["anything"] = 1
    ReplayOperator(task_id="task", source="shop", start="begin").execute(running.context)
    assert spark_submit_program.argv
