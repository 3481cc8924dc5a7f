"""Links that Airflow shows with a task."""

from __future__ import annotations

import pytest

from loader.airflow.reports.links import IntervalLink, SparkLink, StatusLink
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
