"""Links that Airflow shows with a task."""

from __future__ import annotations

import pytest

from loader.airflow.reports.links import ErrorLink, StatusLink
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
    assert [type(link) for link in operator.operator_extra_links] == [StatusLink, ErrorLink]
