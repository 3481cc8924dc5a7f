"""Links that Airflow shows with a task."""

from __future__ import annotations

import pytest

from loader.airflow.dags.source_dags import source_dags
from loader.airflow.reports.errors import TaskFailed
from loader.airflow.reports.links import ErrorLink, IntervalLink, LinkedOperator, SparkLink, StatusLink, TableLink
from loader.errors import DataError, LoaderError, SourceUnavailable
from loader.spark.job import HISTORY
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import operator_of


def test_a_task_has_a_link_to_the_page_of_its_source(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = operator_of("maintain", site)
    assert StatusLink().get_link(operator, ti_key=None) == "/binlog-loader/"  # it failed before it knew its source
    operator.execute(running.context)
    assert StatusLink().get_link(operator, ti_key=None) == "/binlog-loader/source?name=shop"
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org/team/")
    assert (
        StatusLink().get_link(operator, ti_key=None)
        == "https://airflow.example.org/team/binlog-loader/source?name=shop"
    )


def test_a_task_of_intervals_has_a_link_to_its_first_interval(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org")
    operator = operator_of("materialise", site, start="binlog.000001:4")
    assert IntervalLink().get_link(operator, ti_key=None) == ""
    operator.execute(running.context)
    assert (
        IntervalLink().get_link(operator, ti_key=None)
        == "https://airflow.example.org/binlog-loader/source?name=shop&refresh=off#interval-binlog.000001:4"
    )
    other = operator_of("maintain", site)
    other.execute(running.context)
    assert IntervalLink().get_link(other, ti_key=None) == ""


def test_a_task_has_a_link_to_the_history_of_its_spark_application(
    site: Site, spark_submit_program: SparkSubmit, running: Task
) -> None:
    page = "http://history.example.org:18080/history/app-1/jobs/"
    spark_submit_program.output = [f"INFO loader.spark.job: {HISTORY}{page}\n", "WARN Utils: something else\n"]
    operator = operator_of("maintain", site)
    assert SparkLink().get_link(operator, ti_key=None) == ""
    operator.execute(running.context)
    assert SparkLink().get_link(operator, ti_key=None) == page
    spark_submit_program.output = []
    running.try_number = 2
    operator = operator_of("maintain", site)
    operator.execute(running.context)
    assert SparkLink().get_link(operator, ti_key=None) == ""


@pytest.mark.parametrize(
    ("where", "table"),
    [
        ({"table": "shop.orders"}, "shop.orders"),
        ({"tables": "shop.orders"}, "shop.orders"),
        ({"tables": "shop.items, shop.orders"}, ""),
        ({"position": "binlog.000001:4"}, ""),
    ],
)
def test_a_task_that_fails_for_one_table_has_a_link_to_its_page(where: dict[str, str], table: str) -> None:
    operator = LinkedOperator()
    operator.source_name = "shop"
    assert TableLink().get_link(operator, ti_key=None) == ""
    operator.link_error(DataError("a value does not fit", **where))
    page = f"/binlog-loader/table?source=shop&name={table}" if table else ""
    assert TableLink().get_link(operator, ti_key=None) == page


@pytest.mark.parametrize("task_id", ["plan_interval", "check_tables", "check_runway"])
def test_a_task_without_spark_has_links(
    task_id: str, site: Site, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These tasks fail most often: the server is down, tables are quarantined, the log is purged soon."""
    config = site.folder / "loader.toml"
    config.write_text('docs_url = "https://docs.example.org/"\n' + config.read_text())
    operator = source_dags("shop")["shop.delta"].get_task(task_id)
    operator.op_kwargs = {"source": "shop"}
    failed: list[LoaderError] = []

    def work(source: str) -> str:
        if failed:
            raise TaskFailed(failed[0], retry=False)
        return source

    operator.python_callable = work
    assert operator.execute(running.context) == "shop"
    status, table, error = (link.get_link(operator, ti_key=running) for link in operator.operator_extra_links)
    assert (status, table, error) == ("/binlog-loader/source?name=shop", "", "")
    failed.append(SourceUnavailable("the server does not answer", source="db:3306"))
    with pytest.raises(TaskFailed):
        operator.execute(running.context)
    assert ErrorLink().get_link(operator, ti_key=running) == (
        "https://docs.example.org/reference/errors.html#server-unavailable"
    )
    failed[0] = DataError("1 of 5 tables failed", tables="shop.orders")
    with pytest.raises(TaskFailed):
        operator.execute(running.context)
    assert TableLink().get_link(operator, ti_key=running) == "/binlog-loader/table?source=shop&name=shop.orders"
