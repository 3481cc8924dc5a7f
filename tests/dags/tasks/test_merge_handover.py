"""On a cluster, one Spark application extracts and merges, and the second task reports the merge."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from airflow.sdk import DAG
from airflow.sdk.execution_time.context import OutletEventAccessors

from loader import pipeline
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.stages.extract_operator import HANDOVER, ExtractOperator
from loader.airflow.stages.materialise_operator import MaterialiseOperator
from loader.errors import DataError, RetryableError
from loader.extract.spec import ExtractResult, TableRows, backlog_result
from loader.materialise.spec import TableResult
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import connect, publish

STAGED = ExtractResult(
    status="staged",
    start="binlog.000001:4",
    stop="binlog.000001:100",
    start_seqno=1_000_000_000_004,
    stop_seqno=1_000_000_000_100,
    tables=(TableRows(table="shop.orders", inserts=3),),
    bytes=96,
    events=4,
)
APPLIED = TableResult(
    table="shop.orders", status="applied", inserts=3, rows_inserted=3, position="binlog.000001:100", snapshot=7
)


class Run:
    """A run of the delta on YARN: its tasks `extract` and `materialise`, in that order."""

    def __init__(self, site: Site) -> None:
        self.events: dict[str, Any] = {}
        with DAG("shop.delta", schedule=None):
            interval: Any = site.interval
            self._extract = ExtractOperator(task_id="extract", source="", interval=interval)
            self._materialise = MaterialiseOperator(
                task_id="materialise", source="", staged=self._extract.output, interval=interval, fail_on_tables=False
            )

    def extract(self, running: Task) -> dict[str, Any]:
        return self._extract.execute(running.context)

    def materialise(self, staged: dict[str, Any], running: Task) -> dict[str, Any]:
        self._materialise.arguments = staged
        running.outlets = [tables_alias("shop")]
        accessors = OutletEventAccessors()
        result = self._materialise.execute({**running.context, "outlet_events": accessors})
        found = accessors[tables_alias("shop")].asset_alias_events
        self.events = {event.dest_asset_key.name: event.extra["inserts"] for event in found}
        return result

    def lineage(self) -> list[str]:
        found = self._materialise.get_openlineage_facets_on_complete(None)
        return [one.name for one in found.inputs]

    def lineage_of_extract(self) -> list[str]:
        return [one.name for one in self._extract.get_openlineage_facets_on_complete(None).inputs]


@pytest.fixture
def run(site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch) -> Run:
    connect(monkeypatch, conn_type="spark", host="yarn")
    monkeypatch.setattr(pipeline, "find_unloaded", lambda *_: ())  # asks the server otherwise
    merged(spark_submit_program, APPLIED)
    return Run(site)


def merged(program: SparkSubmit, *tables: TableResult, unmerged: dict[str, Any] | None = None) -> None:
    """Let the application stage the interval, and merge these tables."""
    program.result = {
        "extracts": [STAGED.model_dump(mode="json")],
        "materialise": {"tables": [table.model_dump(mode="json") for table in tables]},
        "failed": None,
        "unmerged": unmerged,
    }


def test_one_application_does_both(run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    staged = run.extract(running)
    assert staged == backlog_result([STAGED]).model_dump(mode="json")
    argv = cast("list[str]", spark_submit_program.argv)
    assert [one.rpartition("/loader/")[2] for one in argv if one.endswith("job.py")] == ["delta/job.py"]
    spec = spark_submit_program.spec
    assert (spec["threads"], spec["materialise"]["now"], spec["report_unmerged"]) == (0, False, True)
    assert (spec["extract"]["start_seqno"], spec["extract"]["through_seqno"]) == (
        site.interval["start_seqno"],
        site.interval["through_seqno"],
    )
    spark_submit_program.argv = None
    site.stage()
    publish(site, site.plan.stop)
    result = run.materialise(staged, running)
    assert spark_submit_program.argv is None
    assert result["tables"] == [APPLIED.model_dump(mode="json")]
    assert run.events == {"lake.shop.orders": 3}
    assert run.lineage() == ["shop.orders"]
    assert run.lineage_of_extract() == []


def test_a_cleared_report_of_a_merge_counts_no_rows_again(
    run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def count(name: str, rows: int, **_: object) -> None:
        counted.append(rows)

    stats = SimpleNamespace(incr=count, timing=lambda *_, **__: None)
    monkeypatch.setattr("loader.airflow.reports.work_metrics.stats_client", lambda: stats)
    staged = run.extract(running)
    counted.clear()
    site.stage()
    publish(site, site.plan.stop)
    run.materialise(staged, running)
    assert counted == [3]
    running.try_number = 2
    assert run.materialise(staged, running)["tables"] == [APPLIED.model_dump(mode="json")]
    assert counted == [3]
    assert run.events == {"lake.shop.orders": 3}  # they can be repeated


def test_a_merge_that_failed_is_done_again_by_its_own_task(
    run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task, caplog: pytest.LogCaptureFixture
) -> None:
    down = RetryableError("the catalog does not answer", hint="wait")
    merged(spark_submit_program, unmerged=down.as_dict())
    spark_submit_program.exit_code = 3
    with caplog.at_level("WARNING"):
        staged = run.extract(running)
    assert staged["status"] == "staged"
    assert "everything is staged, and the merge is tried again: the catalog does not answer" in caplog.text
    site.stage()
    spark_submit_program.result = {"error": down.as_dict()}
    with pytest.raises(TaskFailed, match="the catalog does not answer"):
        run.materialise(staged, running)
    assert (spark_submit_program.argv or [""])[-5].endswith("/materialise_job.py")


def test_a_table_that_failed_is_merged_again_and_the_others_are_reported(
    run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    error = RetryableError("no answer", hint="wait", table="shop.lines").as_dict()
    merged(spark_submit_program, TableResult(table="shop.lines", status="failed", error=error), APPLIED)
    staged = run.extract(running)
    site.stage()
    lines = TableResult(table="shop.lines", status="applied", inserts=5, snapshot=9).model_dump(mode="json")
    already = TableResult(table="shop.orders", status="already", snapshot=7).model_dump(mode="json")
    spark_submit_program.result = {"tables": [lines, already]}
    assert run.materialise(staged, running)["tables"] == [lines, APPLIED.model_dump(mode="json")]
    assert run.events == {"lake.shop.lines": 5, "lake.shop.orders": 3}


def test_a_driver_that_is_lost_in_the_merge_fails_no_extraction(
    run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    spark_submit_program.result, spark_submit_program.exit_code = None, 137
    with pytest.raises(TaskFailed, match="the Spark job ended without a result"):
        run.extract(running)
    site.stage()
    spark_submit_program.argv = None
    assert run.extract(running)["status"] == "already"
    assert spark_submit_program.argv is None


def test_the_driver_may_have_staged_before_it_was_lost(
    run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose() -> int:
        site.stage()
        return 137

    spark_submit_program.result = None
    monkeypatch.setattr(spark_submit_program, "wait", lose)
    assert run.extract(running)["status"] == "already"
    assert running.xcoms[HANDOVER] == {"tables": [], "tries": 1}


def test_an_extraction_that_fails_is_not_hidden(run: Run, spark_submit_program: SparkSubmit, running: Task) -> None:
    spark_submit_program.result = {"error": DataError("a row cannot be read", hint="look").as_dict()}
    with pytest.raises(TaskFailed, match="a row cannot be read"):
        run.extract(running)


def test_a_worker_that_is_lost_after_the_merge_loses_no_report(
    run: Run, site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    """The first try of `extract` was lost with its results, and the second one finds the interval staged."""
    site.stage()
    publish(site, site.plan.stop)
    running.try_number = 2
    found = run.extract(running)
    running.try_number = 1
    staged = {**found, "tables": [table.model_dump() for table in STAGED.tables]}
    assert run.materialise(staged, running)["tables"][0]["status"] == "already"
    assert run.events == {"lake.shop.orders": 3}
    assert run.lineage() == ["shop.orders"]
    assert spark_submit_program.argv is None


def test_on_one_machine_nothing_is_handed_over(
    run: Run, site: Site, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="local[2]")
    site.stage()
    publish(site, site.plan.stop)
    running.try_number = 2
    staged = run.extract(running)
    running.try_number = 1
    run.materialise({**staged, "tables": [table.model_dump() for table in STAGED.tables]}, running)
    assert (run.events, HANDOVER in running.xcoms) == ({}, False)
