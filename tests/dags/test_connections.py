"""Connections of Airflow: the Spark master, servers, and passwords."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from loader.airflow.connections import server_of, spark_settings
from loader.airflow.sources import settings_of
from loader.airflow.versions import open_dag_bag
from loader.errors import UsageError
from loader.secret import secret_variable
from loader.spark.job_files import RESULTS
from loader.spark.settings import SparkSettings
from loader.transport.server.address import ServerAddress
from tests.dags.conftest import Site, SparkSubmit, Task
from tests.dags.operators import (
    SPARK,
    connect,
    failed_task,
    operator_of,
)

# The Spark connection.


@pytest.mark.parametrize("value", [None, "spark://local[*]", "yarn://", '{"conn_type": "spark"}', '{"host": "yarn"}'])
def test_without_a_spark_connection_the_task_fails(
    value: str | None, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SPARK)
    if value:
        monkeypatch.setenv(SPARK, value)
    error = failed_task("materialise", site, running)
    assert not error.retry
    assert "spark_default" in str(error)
    assert '{"conn_type": "spark", "host": "local[*]"}' in str(error)
    assert spark_submit_program.argv is None


def test_a_driver_elsewhere_leaves_its_result_in_the_store(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="yarn", extra={"deploy-mode": "cluster"})
    spark_submit_program.result = {"tables": [], "stop": "binlog.000001:100"}
    assert operator_of("materialise", site).execute(running.context) == spark_submit_program.result
    argv = spark_submit_program.argv or []
    assert argv[argv.index("--deploy-mode") + 1] == "cluster"
    assert spark_submit_program.spec["source"] == "shop"
    assert not [option for option in argv if "appMasterEnv" in option]
    assert list(site.chain.store.list(RESULTS)) == []


def test_a_stopped_task_ends_a_driver_elsewhere(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="yarn", extra={"deploy-mode": "cluster"})
    spark_submit_program.output = ["INFO Client: Application report for application_17_0003 (state: ACCEPTED)"]
    operator = operator_of("materialise", site)
    operator.execute(running.context)
    started: list[list[str]] = []

    def ended(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        started.append(argv)
        return subprocess.CompletedProcess(argv, 0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", ended)
    operator.on_kill()
    operator.on_kill()
    assert [argv[1:] for argv in started] == [
        ["org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application", "-kill", "application_17_0003"]
    ]


@pytest.mark.parametrize(
    ("host", "password", "said"),
    [
        ("yarn", "env:SHOP_PASSWORD", "secrets from the environment are not available to a driver on another machine"),
        ("spark://master:7077", "", "deploy mode cluster needs YARN"),
    ],
)
def test_what_a_driver_elsewhere_lacks_is_refused(
    host: str,
    password: str,
    said: str,
    site: Site,
    spark_submit_program: SparkSubmit,
    running: Task,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site.configure(password=password)
    monkeypatch.setenv("SHOP_PASSWORD", "mackerel")
    connect(monkeypatch, conn_type="spark", host=host, extra={"deploy-mode": "cluster"})
    error = failed_task("extract", site, running)
    assert said in str(error)
    assert not error.retry
    assert spark_submit_program.argv is None


EXAMPLES = json.loads((Path(__file__).parents[2] / "infra/examples/connections.example.json").read_text())


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name.startswith("spark_")])
def test_the_operator_takes_every_connection_of_the_examples(
    name: str, site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, **EXAMPLES[name])
    if name == "spark_kubernetes":  # its provider is not among what is installed here
        assert "pip install apache-airflow-providers-cncf-kubernetes" in str(failed_task("materialise", site, running))
        return
    operator_of("materialise", site).execute(running.context)
    argv = spark_submit_program.argv or []
    assert argv[argv.index("--master") + 1] == EXAMPLES[name]["host"]
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
    connect(monkeypatch, conn_type="spark", **connection)
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
    operator = operator_of("load_tables", site)
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
    error = failed_task("materialise", site, running)
    assert not error.retry
    assert "nowhere" in str(error)
    assert spark_submit_program.argv is None


def test_a_password_reaches_a_cluster_by_private_traffic_only(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP-DB", json.dumps({"conn_type": "generic", "password": "hunter2"}))
    connect(monkeypatch, conn_type="spark", host="yarn")
    site.configure(password="airflow:shop-db", conf='"spark.authenticate" = "true"')
    refused = str(failed_task("extract", site, running))
    assert "not available on other machines" in refused
    assert "[spark.conf] lacks spark.network.crypto.enabled, without which" in refused
    assert "; or set password to file:/path, and put that file on every node" in refused
    operator_of("materialise", site).execute(running.context)  # which never asks the source
    site.configure(
        password="airflow:shop-db", conf='"spark.authenticate" = "true", "spark.network.crypto.enabled" = "true"'
    )
    operator_of("extract", site).execute(running.context)
    assert spark_submit_program.env[secret_variable("shop-db")] == "hunter2"
    assert "hunter2" not in str(spark_submit_program.argv)


def test_a_worker_without_the_configuration_of_yarn(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, conn_type="spark", host="yarn")
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.env["HADOOP_CONF_DIR"] == os.environ["HADOOP_CONF_DIR"]
    monkeypatch.delenv("HADOOP_CONF_DIR")
    error = failed_task("materialise", site, running)
    assert not error.retry
    assert "no configuration of YARN was found" in str(error)
    assert "export HADOOP_CONF_DIR=/etc/hadoop/conf" in str(error)


# The server of a source.

TLS = {"tls": "required", "tls_ca": "/ca.pem", "tls_cert": "/cert.pem", "tls_key": "/key.pem"}


def serve(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({"conn_type": "binlog_source", **fields}))


def test_a_connection_has_the_whole_server(airflow_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, host="db", port=3307, login="loader", password="hunter2", extra=TLS | {"tls_key": None})
    assert server_of("airflow:shop_db") == ServerAddress(
        host="db", port=3307, user="loader", password="airflow:shop_db", **TLS | {"tls_key": ""}
    )
    serve(monkeypatch, host="db", login="loader")
    assert server_of("airflow:shop_db") == ServerAddress(host="db", user="loader")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"login": "loader"}, "write the name or address of a host; user and password have their own keys"),
        ({"host": "db"}, "write the user of the loader"),
        ({"host": "db", "login": "loader", "extra": {"tls": "maybe"}}, "tls: Input should be '', 'required' or 'off'"),
        ({"host": "db", "login": "loader", "extra": {"tls_key": "/k"}}, "Value error, tls_key needs tls_cert"),
    ],
)
def test_a_connection_without_a_valid_server(
    fields: dict[str, Any], why: str, airflow_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, password="hunter2", **fields)
    with pytest.raises(UsageError, match="the Airflow connection has no valid server") as refused:
        server_of("airflow:shop_db")
    assert refused.value.why.startswith(why)
    assert "hunter2" not in str(refused.value)


def use_connection(site: Site) -> None:
    """Let the source have its server from a connection."""
    file = site.folder / "loader.toml"
    text = file.read_text()
    for line in ('host = "127.0.0.1"', "port = 1", 'user = "loader"', 'password = ""'):
        assert line in text
        text = text.replace(line, "")
    file.write_text(text.replace("[sources.shop]", '[sources.shop]\nserver = "airflow:shop_db"'))


def test_a_refused_password_of_such_a_server_is_no_key_to_change(
    site: Site, spark_submit_program: SparkSubmit, running: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration refuses `password` next to `server`."""
    use_connection(site)
    serve(monkeypatch, host="db", login="loader", password="hunter2")
    connect(monkeypatch, conn_type="spark", host="yarn")
    refused = str(failed_task("extract", site, running))
    assert "not available on other machines (key server)" in refused
    assert "; or replace server of the source by host, port, user and TLS of that connection, and set password to" in (
        refused
    )


def test_a_task_takes_the_server_from_the_connection(
    site: Site,
    spark_submit_program: SparkSubmit,
    running: Task,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use_connection(site)
    assert open_dag_bag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]).import_errors == {}  # it is not read for DAG files
    error = failed_task("materialise", site, running)
    assert "the Airflow connection does not exist" in str(error)
    serve(monkeypatch, host="db.example.org", login="loader", password="hunter2", extra={"tls_ca": "/ca.pem"})
    settings = settings_of("shop")
    assert (str(settings.server), settings.server.tls_ca) == ("loader@db.example.org:3306", "/ca.pem")
    operator_of("materialise", site).execute(running.context)
    assert spark_submit_program.env[secret_variable("shop_db")] == "hunter2"
    told = [*(spark_submit_program.argv or []), json.dumps(spark_submit_program.spec), *capsys.readouterr()]
    assert not any("hunter2" in text for text in [*told, json.dumps(running.xcoms)])
