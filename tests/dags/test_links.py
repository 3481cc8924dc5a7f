"""Links that Airflow shows with a task."""

from __future__ import annotations

import pytest

from loader.airflow.reports.links import ErrorLink, StatusLink
from loader.errors import DataError
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


def test_a_failed_task_has_a_link_to_its_error(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    operator = operator_of("maintain", site)
    assert ErrorLink().get_link(operator, ti_key=None) == ""
    with (site.folder / "loader.toml").open("r+", encoding="utf-8") as config:
        text = config.read()
        config.seek(0)
        config.write(f'docs_url = "https://docs.example.org/"\n{text}')
    spark_submit_program.result = {"error": DataError("the table was replaced in the warehouse").as_dict()}
    with pytest.raises(SystemExit):
        operator.execute(running.context)
    page = "https://docs.example.org/reference/errors.html"
    assert ErrorLink().get_link(operator, ti_key=None) == f"{page}#table-replaced"
