"""The operator: what it starts, what it does not, and what it makes of the outcome."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowSkipException

import loader
from loader.airflow.connections import spark_settings
from loader.airflow.errors import RetryWhereItHelps, TaskFailed
from loader.airflow.operators import LoaderSparkOperator, UseCase
from loader.airflow.report import summary
from loader.errors import GapError, LoaderError, SourceUnavailable, UsageError
from loader.materialise.merge.load_notes import note_loaded
from loader.materialise.spec import LoadSpec, MaterialiseResult, TableResult
from loader.secret import secret_variable
from loader.spark.job import failure
from loader.spark.submit import SparkSettings
from loader.staging.documents import IncompleteTable, Published, PublishedTable
from tests.dags.conftest import Site, SparkSubmit, Task

_GOLDEN = Path(__file__).with_name("golden")
_SPARK = "AIRFLOW_CONN_SPARK_DEFAULT"
_USE_CASES: tuple[UseCase, ...] = ("read_tables", "load_tables", "materialise", "replay", "maintain")


def _operator(use_case: UseCase, site: Site, **arguments: object) -> LoaderSparkOperator:
    place = {"lognum": 1, "logpos": 4, "dry_run": True}
    given = {"tables": [], "manifests": ["shop/0001/load/m.json"], **place, **site.interval, **arguments}
    return LoaderSparkOperator(task_id=use_case, use_case=use_case, source="", arguments=given)


def _failed(use_case: UseCase, site: Site, running: Task) -> TaskFailed:
    with pytest.raises(TaskFailed) as caught:
        _operator(use_case, site).execute(running.context)
    return caught.value


def _connect(monkeypatch: pytest.MonkeyPatch, **connection: object) -> None:
    monkeypatch.setenv(_SPARK, json.dumps(connection))


def _rendered(argv: list[str], site: Site) -> str:
    """The command, a part per line, with the names of this machine's folders replaced."""
    task = Path(argv[argv.index("--spec") + 1]).parent
    text = "\n".join(argv) + "\n"
    places = {
        task: "$TASK",
        site.jars: "$JARS",
        Path(argv[0]).parents[1]: "$SPARK_HOME",
        Path(loader.__file__).parent: "$LOADER",
        sys.executable: "$PYTHON",
        os.environ.get("LOADER_CACHE", Path.home() / ".cache" / "binlog-loader"): "$CACHE",
    }
    for place, name in places.items():
        text = text.replace(str(place), name)
    return text


@pytest.mark.parametrize("use_case", _USE_CASES)
def test_the_command(use_case: UseCase, site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    _operator(use_case, site).execute(running.context)
    assert spark_submit_program.argv
    assert _rendered(spark_submit_program.argv, site) == (_GOLDEN / f"{use_case}.txt").read_text()


@pytest.mark.parametrize("use_case", ["extract", "materialise"])
def test_the_command_for_a_cluster(
    use_case: UseCase, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect(monkeypatch, conn_type="spark", host="yarn", extra={"deploy-mode": "client", "queue": "loader"})
    _operator(use_case, site).execute(running.context)
    assert spark_submit_program.argv
    assert _rendered(spark_submit_program.argv, site) == (_GOLDEN / f"{use_case}-yarn.txt").read_text()


def test_arguments_reach_the_job(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    _operator("read_tables", site, tables=["shop.orders"]).execute(running.context)
    assert spark_submit_program.spec["only"] == ["shop.orders"]
    _operator("load_tables", site, manifests=["load/a.json", "load/b.json"]).execute(running.context)
    assert spark_submit_program.spec["manifests"] == ["load/a.json", "load/b.json"]
    _operator("materialise", site).execute(running.context)
    assert spark_submit_program.spec["through_seqno"] == 1_000_000_000_100


def test_spark_finds_its_python(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    _operator("materialise", site).execute(running.context)
    assert {"SPARK_HOME", "PYSPARK_PYTHON", "PATH"} <= set(spark_submit_program.env)


def test_the_result_is_returned_and_logged(
    site: Site, spark_submit_program: SparkSubmit, running: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = (TableResult(table="shop.orders", status="applied", inserts=3, position="binlog.000001:100"),)
    result = MaterialiseResult(tables=tables, stop="binlog.000001:100").model_dump(mode="json")
    spark_submit_program.result = result
    assert _operator("materialise", site).execute(running.context) == result
    log = capsys.readouterr().out
    assert "] stop binlog.000001:100 " in log
    assert "] table        status   inserts  updates  deletes  position " in log
    assert "] shop.orders  applied  3        0        0        binlog.000001:100 " in log


# The Spark connection.


@pytest.mark.parametrize("value", [None, "spark://local[*]", "yarn://", '{"conn_type": "spark"}', '{"host": "yarn"}'])
def test_without_a_spark_connection_the_task_fails(
    value: str | None, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(_SPARK)
    if value:
        monkeypatch.setenv(_SPARK, value)
    error = _failed("materialise", site, running)
    assert not error.retry
    assert "spark_default" in str(error)
    assert '{"conn_type": "spark", "host": "local[*]"}' in str(error)
    assert spark_submit_program.argv is None


def test_a_driver_elsewhere_is_refused(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect(monkeypatch, conn_type="spark", host="yarn", extra={"deploy-mode": "cluster"})
    assert "deploy mode cluster" in str(_failed("materialise", site, running))
    assert spark_submit_program.argv is None


_EXAMPLES = json.loads((Path(__file__).parents[2] / "infra/examples/connections.example.json").read_text())


@pytest.mark.parametrize("name", [name for name in _EXAMPLES if name.startswith("spark_")])
def test_the_operator_takes_every_connection_of_the_examples(
    name: str, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect(monkeypatch, **_EXAMPLES[name])
    if name == "spark_kubernetes":  # its provider is not among what is installed here
        assert "pip install apache-airflow-providers-cncf-kubernetes" in str(_failed("materialise", site, running))
        return
    _operator("materialise", site).execute(running.context)
    argv = spark_submit_program.argv or []
    assert argv[argv.index("--master") + 1] == _EXAMPLES[name]["host"]
    assert "cluster" not in argv
    assert {"SPARK_HOME", "PYSPARK_PYTHON"} <= spark_submit_program.env.keys()


@pytest.mark.parametrize(
    "connection",
    [
        {"host": "local[2]"},
        {"host": "yarn"},
        {"host": "spark://master:7077"},
        {"host": "spark://master", "port": 7077},
        {"host": "master", "port": 7077},
    ],
)
def test_the_master_is_what_the_provider_reads(
    connection: dict[str, Any], airflow_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _connect(monkeypatch, conn_type="spark", **connection)
    ours = spark_settings(SparkSettings(master="local[9]", jars="j"), "spark_default")
    assert ours.master == SparkSubmitHook()._connection["master"]


# The password of a source.


def test_a_password_is_in_the_environment_only(
    site: Site,
    spark_submit_program: SparkSubmit,
    running: Task,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site.configure(password="airflow:shop-db", secrets='token = "airflow:shop_db", credential = "airflow:shop_db"')
    for name, password in (("SHOP-DB", "hunter2"), ("SHOP_DB", "hunter2 of the catalog")):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps({"conn_type": "generic", "password": password}))
    operator = _operator("read_tables", site)
    operator.execute(running.context)
    lent = {name: value for name, value in spark_submit_program.env.items() if name.startswith("LOADER_SECRET_")}
    assert lent == {secret_variable("shop-db"): "hunter2", secret_variable("shop_db"): "hunter2 of the catalog"}
    assert not lent.keys() & os.environ.keys()
    assert spark_submit_program.argv
    told = [
        *spark_submit_program.argv,
        json.dumps(spark_submit_program.spec),
        str(operator.env_vars),
        *capsys.readouterr(),
    ]
    assert not any("hunter2" in text for text in told)


def test_a_password_of_no_connection(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.configure(password="airflow:nowhere")
    error = _failed("materialise", site, running)
    assert not error.retry
    assert "nowhere" in str(error)
    assert spark_submit_program.argv is None


def test_a_password_that_cannot_reach_a_cluster(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.configure(password="airflow:shop-db")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP-DB", json.dumps({"conn_type": "generic", "password": "hunter2"}))
    _connect(monkeypatch, conn_type="spark", host="yarn")
    assert "no other machine" in str(_failed("extract", site, running))
    _operator("materialise", site).execute(running.context)  # which never asks the source


# Errors.


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (SourceUnavailable("the server does not answer", why="refused", hint="start it", source="db"), True),
        (GapError("the log is gone", why="purged", hint="load again", file="binlog.000001"), False),
        (UsageError("no jars", hint="fetch them"), False),
        (ConnectionRefusedError("the catalog is down"), True),
    ],
)
def test_an_error_of_the_job_counts_for_more_than_its_exit_code(
    error: Exception, retried: bool, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    told = failure(error)
    spark_submit_program.result, spark_submit_program.exit_code = {"error": told}, told["exit_code"]
    raised = _failed("materialise", site, running)
    assert raised.retry is retried
    assert raised.code == told["exit_code"]
    assert "Cannot execute" not in str(raised)
    assert running.xcoms == {"error": told}
    if isinstance(error, LoaderError):
        assert str(raised) == str(error)


@pytest.mark.parametrize(("tries", "retried"), [(1, True), (2, True), (3, False)])
def test_an_error_that_nobody_foresaw_is_retried_twice(
    tries: int, retried: bool, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    told = failure(ZeroDivisionError("division by zero"))
    running.try_number = tries
    spark_submit_program.result, spark_submit_program.exit_code = {"error": told}, 1
    assert _failed("materialise", site, running).retry is retried
    table = {"table": "shop.orders", "status": "failed", "error": told}
    spark_submit_program.result = {"tables": [table]}
    assert _failed("materialise", site, running).retry is retried


def test_a_job_that_dies_is_tried_again(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    spark_submit_program.result, spark_submit_program.exit_code = None, 137
    frames = ["    at org.apache.spark.Here", *["    at org.apache.spark.There"] * 99, "... 7 more"]
    spark_submit_program.output = ["starting", "java.lang.OutOfMemoryError: Java heap space", *frames]
    raised = _failed("materialise", site, running)
    assert raised.retry
    assert "why: Error code is: 137; its last lines:\n" in str(raised)
    ending = "     | starting\n     | java.lang.OutOfMemoryError: Java heap space\n  what to do: read its output"
    assert ending in str(raised)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_result_counts_for_more_than_the_exit_code(
    exit_code: int, site: Site, spark_submit_program: SparkSubmit, running: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit_program.exit_code = exit_code
    assert _operator("materialise", site).execute(running.context) == {"tables": []}
    assert ("spark-submit ended with an error: Error code is: 1" in capsys.readouterr().out) is bool(exit_code)


def test_only_what_the_loader_says_of_sparks_output_is_in_the_log(
    site: Site, spark_submit_program: SparkSubmit, running: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = "INFO loader.materialise.merge.source_run: shop.orders: applied, at binlog.000001:100"
    theirs = [
        "26/11/22 WARN NativeCodeLoader: no native library",
        "INFO py4j: hello",
        "Traceback (most recent call last):",
    ]
    spark_submit_program.output = [theirs[0], ours, *theirs[1:]]
    _operator("materialise", site).execute(running.context)
    log = capsys.readouterr().out
    assert "] shop.orders: applied, at binlog.000001:100 " in log
    assert not [
        line for line in (*theirs, "spark-submit", str(site.jars)) if line in log.replace("spark-submit ended", "")
    ]
    file = Path(running_log(running), "attempt=1.details.log")
    assert f"its output: {file}" in log
    text = file.read_text()
    assert [line for line in theirs if line not in text] == []
    assert "--master local[2]" in text
    assert len(log.splitlines()) < 20


def running_log(running: Task) -> Path:
    folder = Path(os.environ["AIRFLOW__LOGGING__BASE_LOG_FOLDER"])
    return folder / f"dag_id={running.dag_id}" / f"run_id={running.run_id}" / f"task_id={running.task_id}"


def test_a_secret_that_airflow_hides_is_hidden_in_sparks_output(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.configure(password="airflow:shop-db")
    monkeypatch.setenv(
        "AIRFLOW_CONN_SHOP-DB", json.dumps({"conn_type": "generic", "password": "swordfish-of-the-shop"})
    )
    spark_submit_program.output = ["jdbc:mysql://loader:swordfish-of-the-shop@db"]
    _operator("materialise", site).execute(running.context)
    assert "jdbc:mysql://loader:***@db" in (running_log(running) / "attempt=1.details.log").read_text()


def test_the_log_ends_with_what_to_do(
    site: Site, spark_submit_program: SparkSubmit, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    error = GapError("the log is gone", why="purged", hint="loader initial-load --again", file="binlog.000001")
    spark_submit_program.result, spark_submit_program.exit_code = {"error": error.as_dict()}, 4
    spark_submit_program.output = ["Traceback (most recent call last):", "RuntimeError: the log is gone"]
    with caplog.at_level("ERROR"):
        _failed("materialise", site, running)
    assert [record.getMessage() for record in caplog.records] == [
        "the log is gone (file binlog.000001)",
        "  why: purged",
        "  what to do: loader initial-load --again",
        f"  details: {running_log(running)}/attempt=1.details.log",
        "  read on: docs/runbook.md, section A run of `continuous_delta` failed",
    ]


def test_the_traceback_of_a_fault_of_ours_is_in_the_file(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("loader.airflow.operators.LoaderSparkOperator._job", lambda *_: 1 // 0)
    with caplog.at_level("ERROR"):
        raised = _failed("materialise", site, running)
    assert (raised.error.why, raised.retry) == ("ZeroDivisionError: integer division or modulo by zero", True)
    assert not [record for record in caplog.records if "Traceback" in record.getMessage() or record.exc_info]
    assert "Traceback (most recent call last)" in (running_log(running) / "attempt=1.details.log").read_text()


def test_no_retry_follows_an_error_that_it_cannot_help() -> None:
    policy = RetryWhereItHelps()
    for error, retry, action in (
        (TaskFailed(UsageError("x"), retry=False), False, "fail"),
        (TaskFailed(SourceUnavailable("x"), retry=True), True, "default"),
        (ValueError("x"), True, "default"),
    ):
        assert policy.evaluate(error, 1, 5).action.value == action, retry


@pytest.mark.parametrize("second", [SourceUnavailable, GapError])
def test_tables_that_failed_fail_the_task(
    second: type[LoaderError], site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    gap, other = GapError("rows are missing", table="a.b"), second("no answer", hint="wait", table="a.c")
    tables = (
        TableResult(table="a.a", status="applied"),
        TableResult(table="a.b", status="failed", error=gap.as_dict()),
        TableResult(table="a.c", status="failed", error=other.as_dict()),
    )
    spark_submit_program.result = MaterialiseResult(tables=tables).model_dump(mode="json")
    spark_submit_program.exit_code = 4
    raised = _failed("materialise", site, running)
    assert raised.retry is other.retryable
    assert "2 of 3 tables failed (tables a.b, a.c)" in str(raised)
    assert f"why: a.b: {gap}" in str(raised)
    assert "\n     | a.c: no answer (table a.c)\n     |     what to do: wait\n" in str(raised)
    behind = LoaderSparkOperator(
        task_id="x", use_case="materialise", source="", arguments=site.interval, fail_on_tables=False
    )
    if other.retryable:
        with pytest.raises(TaskFailed, match=r"1 of 3 tables failed \(tables a.c\)"):
            behind.execute(running.context)
    else:
        assert behind.execute(running.context) == spark_submit_program.result


def test_a_table_that_failed_for_an_unknown_reason_is_left_to_the_check_in_the_end(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    table = {"table": "shop.orders", "status": "failed", "error": failure(ZeroDivisionError("division by zero"))}
    spark_submit_program.result = {"tables": [table]}
    operator = LoaderSparkOperator(
        task_id="x", use_case="materialise", source="", arguments=site.interval, fail_on_tables=False
    )
    with pytest.raises(TaskFailed):
        operator.execute(running.context)
    running.try_number = 3
    assert operator.execute(running.context) == spark_submit_program.result


def test_an_unknown_key_is_refused(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    running.conf |= {"lognmu": 5, "source": "shop"}
    raised = _failed("materialise", site, running)
    assert not raised.retry
    assert "lognmu" in str(raised)
    running.max_consecutive_failed_dag_runs = 1  # a failed run would pause the DAG
    with pytest.raises(AirflowSkipException, match="unknown keys: lognmu"):
        _operator("materialise", site).execute(running.context)
    assert spark_submit_program.argv is None


def test_an_unknown_source(site: Site, running: Task) -> None:
    operator = LoaderSparkOperator(task_id="x", use_case="extract", source="shpo", arguments=site.interval)
    with pytest.raises(TaskFailed, match="no source 'shpo'"):
        operator.execute(running.context)


# Work that is done.


def test_a_staged_interval_starts_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    result = _operator("extract", site).execute(running.context)
    assert (result["status"], result["stop"]) == ("already", "binlog.000001:100")
    assert spark_submit_program.argv is None


def test_on_this_machine_an_extraction_starts_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    raised = _failed("extract", site, running)
    assert (raised.error.what, raised.retry) == ("the server does not answer", True)
    assert spark_submit_program.argv is None


def test_an_interval_that_left_a_table_out_is_looked_at_again(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it lacks may have been said since."""
    _connect(monkeypatch, conn_type="spark", host="yarn")
    place = "binlog.000001:50"
    left_out = IncompleteTable(
        table="shop.a", seqno=10**12 + 60, position=place, at=place, what="not known", why="lost"
    )
    site.stage((left_out,))
    spark_submit_program.result = {"status": "already", "tables": [], "left_out": [left_out.model_dump()]}
    assert _operator("extract", site).execute(running.context) == spark_submit_program.result
    assert spark_submit_program.argv is not None
    assert f"shop.a is left out from {place} on: lost" in summary(spark_submit_program.result)


def test_the_log_names_the_interval_that_a_run_could_not_stage_behind_others() -> None:
    failed = GapError("a log file is gone", file="binlog.000002").as_dict()
    said = "\n".join(summary({"status": "staged", "tables": [], "stop": "binlog.000001:100", "failed": failed}))
    assert "the interval at binlog.000001:100 is not staged" in said
    assert "a log file is gone" in said


def test_a_published_interval_starts_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    _publish(site, site.plan.stop)
    result = _operator("materialise", site).execute(running.context)
    assert spark_submit_program.argv is None
    (table,) = result["tables"]
    assert (table["table"], table["status"], table["snapshot"]) == ("shop.orders", "already", 7)
    assert result["published"] == "shop/0001/00000001000000000004/published.json"


def test_an_earlier_record_does_not_count(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    _publish(site, "binlog.000001:50")
    _operator("materialise", site).execute(running.context)
    assert spark_submit_program.argv is not None


def test_a_table_that_was_released_is_brought_on(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    site.stage()
    _publish(site, site.plan.stop, behind={"shop.items": 5})
    _operator("materialise", site).execute(running.context)
    assert spark_submit_program.argv is not None


def test_a_table_that_is_still_quarantined_starts_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    _publish(site, site.plan.stop, behind={"shop.items": 5})
    site.quarantine("shop.items")
    raised = _failed("materialise", site, running)
    assert not raised.retry
    assert "1 of 2 tables failed (tables shop.items)" in str(raised)
    assert "loader release shop.items" in str(raised)
    assert spark_submit_program.argv is None


def test_an_interval_without_a_change_of_any_table_is_published_without_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    _publish(site, site.plan.stop)
    after = site.follow_up("binlog.000001:200")
    result = _operator("materialise", site, stop_seqno=after.stop_seqno).execute(running.context)
    assert spark_submit_program.argv is None
    (table,) = result["tables"]
    assert (table["table"], table["status"], table["complete_through"]) == (
        "shop.orders",
        "unchanged",
        after.stop_seqno,
    )
    newest = site.chain.newest_published("0001")
    assert newest and newest[1].stop == "binlog.000001:200"
    assert newest[1].tables == {"shop.orders": PublishedTable(snapshot=7, applied=5)}


@pytest.mark.parametrize("change", ["rows", "barrier", "left out", "loaded since", "quarantined since"])
def test_a_change_of_a_table_is_merged(
    change: str, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    _publish(site, site.plan.stop)
    after = site.follow_up("binlog.000001:200", change)
    if change == "quarantined since":
        site.quarantine("shop.items")
    _operator("materialise", site, stop_seqno=after.stop_seqno).execute(running.context)
    assert spark_submit_program.argv is not None


def test_a_quarantine_that_a_table_has_left_behind_needs_no_spark(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    site.stage()
    _publish(site, site.plan.stop)
    site.quarantine("shop.orders")  # from when it had nothing applied; the record has it further
    after = site.follow_up("binlog.000001:200")
    result = _operator("materialise", site, stop_seqno=after.stop_seqno).execute(running.context)
    assert [one["status"] for one in result["tables"]] == ["unchanged"]
    assert spark_submit_program.argv is None
    with pytest.raises(UsageError, match="not quarantined"):
        site.release("shop.orders")


def test_loads_that_are_noted_start_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    manifest = "shop/0001/load/shop/orders/00000001000000000004/manifest.json"

    def loaded(only: tuple[str, ...] = ()) -> bool:
        spark_submit_program.argv = None
        result = _operator("load_tables", site, manifests=[manifest], only=only).execute(running.context)
        if spark_submit_program.argv is None:
            assert [(one["table"], one["status"]) for one in result["tables"]] == [("shop.orders", "already")]
        return spark_submit_program.argv is not None

    assert loaded()
    spec = LoadSpec.model_validate(spark_submit_program.spec)
    result = TableResult(table="shop.orders", status="applied", position="binlog.000001:4")
    note_loaded(site.chain.store, spec, result, manifest)
    assert not loaded()
    assert loaded(("shop.orders",))  # a person who names a table wants it looked at
    site.quarantine("shop.orders")
    assert loaded()
    site.release("shop.orders")
    assert not loaded()
    site.configure(warehouse="elsewhere")
    assert loaded()


def test_no_loads_start_no_spark(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    assert _operator("load_tables", site, manifests=[]).execute(running.context)["tables"] == []
    assert spark_submit_program.argv is None


def _publish(site: Site, stop: str, **more: Any) -> None:
    record = Published(
        source="shop",
        generation="0001",
        stop=stop,
        stop_seqno=site.plan.start_seqno - 4 + int(stop.rpartition(":")[2]),
        tables={"shop.orders": PublishedTable(snapshot=7, applied=5)},
        **more,
    )
    path = site.folder / "staging" / site.chain.folder("0001", site.plan.start_seqno) / "published.json"
    path.write_bytes(record.canonical())
