"""The spark-submit command of an operator, and its result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loader.airflow.operators import UseCase
from loader.materialise.spec import MaterialiseResult, TableResult
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import (
    GOLDEN,
    USE_CASES,
    connect,
    log_folder,
    operator_of,
    rendered,
)


@pytest.mark.parametrize("use_case", USE_CASES)
def test_the_command(use_case: UseCase, site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    operator_of(use_case, site).execute(running.context)
    assert spark_submit_program.argv
    assert rendered(spark_submit_program.argv, site) == (GOLDEN / f"{use_case}.txt").read_text()


@pytest.mark.parametrize("use_case", ["read_tables", "extract", "materialise"])
def test_the_command_for_a_cluster(
    use_case: UseCase, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="yarn", extra={"deploy-mode": "client", "queue": "loader"})
    operator_of(use_case, site).execute(running.context)
    assert spark_submit_program.argv
    assert rendered(spark_submit_program.argv, site) == (GOLDEN / f"{use_case}-yarn.txt").read_text()


def test_arguments_reach_the_job(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as cluster:
        connect(cluster, conn_type="spark", host="yarn")
        operator_of("read_tables", site, tables=["shop.orders"]).execute(running.context)
    assert spark_submit_program.spec["only"] == ["shop.orders"]
    operator_of("load_tables", site, manifests=["load/a.json", "load/b.json"]).execute(running.context)
    assert spark_submit_program.spec["manifests"] == ["load/a.json", "load/b.json"]
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.spec["through_seqno"] == 1_000_000_000_100


def test_spark_finds_its_python(site: Site, spark_submit_program: SparkSubmit, running: Task) -> None:
    operator_of("materialise", site).execute(running.context)
    assert {"SPARK_HOME", "PYSPARK_PYTHON", "PATH"} <= set(spark_submit_program.env)


def test_the_result_is_returned_and_logged(
    site: Site, spark_submit_program: SparkSubmit, running: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = (TableResult(table="shop.orders", status="applied", inserts=3, position="binlog.000001:100"),)
    result = MaterialiseResult(tables=tables, stop="binlog.000001:100").model_dump(mode="json")
    spark_submit_program.result = result
    assert operator_of("materialise", site).execute(running.context) == result
    log = capsys.readouterr().out
    assert "] stop binlog.000001:100 " in log
    assert "] table        status   inserts  updates  deletes  position " in log
    assert "] shop.orders  applied  3        0        0        binlog.000001:100 " in log


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
    operator_of("materialise", site).execute(running.context)
    log = capsys.readouterr().out
    assert "] shop.orders: applied, at binlog.000001:100 " in log
    assert not [
        line for line in (*theirs, "spark-submit", str(site.jars)) if line in log.replace("spark-submit ended", "")
    ]
    file = Path(log_folder(running), "attempt=1.details.log")
    assert f"its output: {file}" in log
    text = file.read_text()
    assert [line for line in theirs if line not in text] == []
    assert "--master local[2]" in text
    assert len(log.splitlines()) < 20


def test_a_secret_that_airflow_hides_is_hidden_in_sparks_output(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.configure(password="airflow:shop-db")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP-DB", json.dumps({"conn_type": "generic", "password": "herring-of-the-shop"}))
    spark_submit_program.output = ["jdbc:mysql://loader:herring-of-the-shop@db"]
    operator_of("materialise", site).execute(running.context)
    assert "jdbc:mysql://loader:***@db" in (log_folder(running) / "attempt=1.details.log").read_text()
