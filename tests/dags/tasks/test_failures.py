"""Errors of jobs and tables: what is retried, and what the log says."""

from __future__ import annotations

import pytest

from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.reports.errors import RetryWhereItHelps, TaskFailed, task_failed
from loader.airflow.versions import HAS_RETRY_POLICIES, AirflowFailException, AirflowSkipException, AirflowTaskTimeout
from loader.errors import GapError, LoaderError, SourceUnavailable, UsageError
from loader.materialise.spec import MaterialiseResult, TableResult
from loader.spark.job import failure
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import (
    failed_task,
    log_folder,
    operator_of,
)

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
    raised = failed_task("materialise", site, running)
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
    assert failed_task("materialise", site, running).retry is retried
    table = {"table": "shop.orders", "status": "failed", "error": told}
    spark_submit_program.result = {"tables": [table]}
    assert failed_task("materialise", site, running).retry is retried


def test_a_job_that_dies_is_tried_again(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    spark_submit_program.result, spark_submit_program.exit_code = None, 137
    frames = ["    at org.apache.spark.Here", *["    at org.apache.spark.There"] * 99, "... 7 more"]
    spark_submit_program.output = ["starting", "java.lang.OutOfMemoryError: Java heap space", *frames]
    raised = failed_task("materialise", site, running)
    assert raised.retry
    assert "why: Error code is: 137; its last lines:\n" in str(raised)
    ending = "     | starting\n     | java.lang.OutOfMemoryError: Java heap space\n  what to do: read the output"
    assert ending in str(raised)


def test_a_task_that_reaches_its_time_limit_ends_spark_and_says_what_to_do(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(_: SparkSubmit) -> int:
        raise AirflowTaskTimeout("Timeout, PID: 1")

    monkeypatch.setattr(SparkSubmit, "wait", hang)
    raised = failed_task("materialise", site, running)
    assert raised.retry
    assert running.killed == 1
    assert str(raised).startswith("the task took longer than its time limit\n  why: it was stopped after 2:00:00 (")
    assert "raise airflow.timeout_hours of the source" in str(raised)
    assert running.xcoms["error"]["what"] == "the task took longer than its time limit"
    (details,) = log_folder(running).glob("*.details.log")
    assert "in hang" in details.read_text(encoding="utf-8")


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_result_counts_for_more_than_the_exit_code(
    exit_code: int, site: Site, spark_submit_program: SparkSubmit, running: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit_program.exit_code = exit_code
    assert operator_of("materialise", site).execute(running.context) == {"tables": []}
    assert ("spark-submit ended with an error: Error code is: 1" in capsys.readouterr().out) is bool(exit_code)


def test_the_log_ends_with_what_to_do(
    site: Site, spark_submit_program: SparkSubmit, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    error = GapError("the log is gone", why="purged", hint="loader initial-load --again", file="binlog.000001")
    spark_submit_program.result, spark_submit_program.exit_code = {"error": error.as_dict()}, 4
    spark_submit_program.output = ["Traceback (most recent call last):", "RuntimeError: the log is gone"]
    with caplog.at_level("ERROR"):
        failed_task("materialise", site, running)
    assert [record.getMessage() for record in caplog.records] == [
        "the log is gone (file binlog.000001)",
        "  why: purged",
        "  what to do: loader initial-load --again",
        "  in Airflow: trigger shop.repair with action = load_again, all_tables = true",
        f"  details: {log_folder(running)}/attempt=1.details.log",
        "  read on: docs/runbook.md, section A run failed",
    ]


@pytest.mark.parametrize("site_of_docs", ["", "https://docs.example.org/loader/"])
def test_a_failed_task_links_to_its_error(
    site_of_docs: str, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    config = site.folder / "loader.toml"
    config.write_text(f'docs_url = "{site_of_docs}"\n' + config.read_text())
    operator = operator_of("materialise", site)
    *_, link = operator.operator_extra_links
    operator.execute(running.context)
    assert link.get_link(operator, ti_key=running) == ""
    error = GapError("the log file was replaced by another one of the same name", file="binlog.000001")
    spark_submit_program.result, spark_submit_program.exit_code = {"error": error.as_dict()}, 4
    with pytest.raises(TaskFailed):
        operator.execute(running.context)
    found = link.get_link(operator, ti_key=running)
    assert found == (f"{site_of_docs}reference/errors.html#log-reset" if site_of_docs else "")


def test_the_traceback_of_a_fault_of_ours_is_in_the_file(
    site: Site, running: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("loader.airflow.operators.LoaderSparkOperator._job", lambda *_: int("\x1b[2J"))
    with caplog.at_level("ERROR"):
        raised = failed_task("materialise", site, running)
    why = r"ValueError: invalid literal for int() with base 10: '\x1b[2J'"
    assert (raised.error.why, raised.retry) == (why, True)
    assert not [record for record in caplog.records if "Traceback" in record.getMessage() or record.exc_info]
    details = (log_folder(running) / "attempt=1.details.log").read_text()
    assert details.startswith("Traceback (most recent call last)")


def test_the_file_of_details_does_not_act_on_a_terminal(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_submit_program.result, spark_submit_program.exit_code = None, 1
    spark_submit_program.output = ["\x1b[2J table \x9bm", "at\torg.apache.spark.Spark"]
    failed_task("materialise", site, running)

    def fail(*_: object) -> None:
        raise ValueError("\x1b[2J")

    monkeypatch.setattr("loader.airflow.operators.LoaderSparkOperator._job", fail)
    failed_task("materialise", site, running)
    text = (log_folder(running) / "attempt=1.details.log").read_text()
    assert "\n".join(["", r"\x1b[2J table \x9bm", "at      org.apache.spark.Spark", ""]) in text
    assert text.splitlines()[-1] == r"ValueError: \x1b[2J"
    assert not {"\x1b", "\x9b"} & set(text)


@pytest.mark.skipif(not HAS_RETRY_POLICIES, reason="this version of Airflow has no retry policies")
def test_no_retry_follows_an_error_that_it_cannot_help() -> None:
    policy = RetryWhereItHelps()
    for error, retry, action in (
        (TaskFailed(UsageError("x"), retry=False), False, "fail"),
        (TaskFailed(SourceUnavailable("x"), retry=True), True, "default"),
        (ValueError("x"), True, "default"),
    ):
        assert policy.evaluate(error, 1, 5).action.value == action, retry


@pytest.mark.parametrize("policies", [False, True])
@pytest.mark.parametrize("retry", [False, True])
def test_without_policies_the_class_of_the_exception_prevents_retries(
    policies: bool, retry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loader.airflow.reports.errors.HAS_RETRY_POLICIES", policies)
    failed = task_failed(UsageError("x"), retry=retry)
    assert (str(failed), failed.code, failed.retry) == ("x", 2, retry)
    assert isinstance(failed, AirflowFailException) == (not policies and not retry)


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
    raised = failed_task("materialise", site, running)
    assert raised.retry is other.retryable
    assert "2 of 3 tables failed (tables a.b, a.c)" in str(raised)
    assert str(raised.error.__cause__) == str(gap)
    assert f"why: a.b: {gap}" in str(raised)
    assert "\n     | a.c: no answer (table a.c)\n     |     what to do: wait\n" in str(raised)
    behind = LoaderSparkOperator(
        task_id="x", use_case="materialise", source="", arguments=site.interval, fail_on_tables=False
    )
    if other.retryable:
        with pytest.raises(TaskFailed, match=r"1 of 3 tables failed \(tables a.c\)"):
            behind.execute(running.context)
        running.try_number = running.max_tries + 1  # the last try: the other tables are done
        assert behind.execute(running.context) == spark_submit_program.result
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
    raised = failed_task("materialise", site, running)
    assert not raised.retry
    assert "lognmu" in str(raised)
    running.max_consecutive_failed_dag_runs = 1  # a failed run would pause the DAG
    with pytest.raises(AirflowSkipException, match="unknown keys: lognmu"):
        operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.argv is None


def test_an_unknown_source(site: Site, running: Task) -> None:
    operator = LoaderSparkOperator(task_id="x", use_case="extract", source="shpo", arguments=site.interval)
    with pytest.raises(TaskFailed, match="no source 'shpo'"):
        operator.execute(running.context)
