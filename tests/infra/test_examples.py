"""The files for production parse, and name what exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from loader.config.file import load_config
from loader.dag_settings import load_pool_of, pool_of
from loader.pipeline import gauges, prometheus_text, unreadable
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.conftest import StartServer
from tests.unit.pipeline.test_gauges import LAG

INFRA = Path(__file__).resolve().parents[2] / "infra"
EXAMPLES = INFRA / "examples"
AIRFLOW_PARTS = {"api-server", "scheduler", "dag-processor", "triggerer"}


@pytest.fixture(scope="module")
def services() -> dict[str, dict]:
    return yaml.safe_load((EXAMPLES / "compose.yaml").read_text())["services"]


def test_compose_has_every_part(services: dict[str, dict]) -> None:
    assert set(services) >= AIRFLOW_PARTS | {"mysql", "postgres"}


def test_all_parts_of_airflow_share_their_secrets(services: dict[str, dict]) -> None:
    names = ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY", "AIRFLOW__CORE__FERNET_KEY")
    for name in names:
        values = {services[part]["environment"][name] for part in AIRFLOW_PARTS}
        assert len(values) == 1
        assert re.fullmatch(r"\$\{\w+:\?\}", values.pop()), "it comes from the environment, and must be there"


def test_dependencies_are_services(services: dict[str, dict]) -> None:
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)


def test_dockerfile_is_where_compose_looks_for_it(services: dict[str, dict]) -> None:
    build = services["airflow-init"]["build"]
    assert (EXAMPLES / build["context"] / build["dockerfile"]).is_file()


@pytest.mark.parametrize("path", [INFRA / "airflow/connections.json", EXAMPLES / "connections.example.json"])
def test_connections_have_a_type_and_never_become_yarn_by_accident(path: Path) -> None:
    connections = json.loads(path.read_text())
    assert "spark_default" in connections
    for name, connection in connections.items():
        assert connection["conn_type"] == ("spark" if name.startswith("spark_") else "binlog_source")
        if connection["conn_type"] == "spark":
            assert connection["host"], "without a host the provider takes yarn"


def test_compose_has_all_that_its_configuration_names(services: dict[str, dict]) -> None:
    config = load_config(str(EXAMPLES / "loader.toml"))
    (source,) = config.sources.values()
    assert source.host in services
    environment = services["scheduler"]["environment"]
    connection = source.password.removeprefix("airflow:")
    assert json.loads(environment[f"AIRFLOW_CONN_{connection.upper()}"])["conn_type"] == "binlog_source"
    places = [mount.rpartition(":")[2] for mount in services["scheduler"]["volumes"] if not mount.endswith(":ro")]
    for folder in (config.staging.root.removeprefix("file://"), config.warehouse.path):
        assert any(folder.startswith(f"{place}/") for place in places)
    mounted = [mount.split(":")[:2] for service in services.values() for mount in service.get("volumes", [])]
    files = {Path(target).name: EXAMPLES / name for name, target in mounted if name.startswith("./")}
    assert set(files) == {"loader.toml", "source-user.sh", "tls", "ca.pem"}
    assert all(file.is_file() for name, file in files.items() if name not in {"tls", "ca.pem"})
    assert source.tls_ca in [target for name, target in mounted if name == "./tls/ca.pem"]


@pytest.mark.integration
def test_the_user_of_the_examples_may_do_all_that_the_loader_needs(fresh_server: StartServer, tmp_path: Path) -> None:
    """The script as the image runs it, by a `mysql` that takes its input to a server without a password."""
    server = fresh_server()
    program = tmp_path / "mysql"
    options = ["--no-defaults", f"--host={server.host}", f"--port={server.port}", "--user=root", "--protocol=tcp"]
    program.write_text(f"#!/bin/sh\nexec {shlex.join([*server.programs.tool('mysql'), *options])}\n")
    program.chmod(0o755)
    names = {"MYSQL_ROOT_PASSWORD": "any", "SHOP_PASSWORD": "secret-of-the-shop"}
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run([EXAMPLES / "source-user.sh"], env={**os.environ, **names, "PATH": path}, check=True)
    address = ServerAddress(host=server.host, port=server.port, user="loader", password="env:SHOP_PASSWORD")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_PASSWORD", names["SHOP_PASSWORD"])
        with connected(address) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            assert cursor.fetchall()


def test_compose_makes_the_pools_of_its_source(services: dict[str, dict]) -> None:
    config = load_config(str(EXAMPLES / "loader.toml"))
    ((name, source),) = config.sources.items()
    for pool in (pool_of(name, source.airflow), load_pool_of(name, source.airflow)):
        assert f"airflow pools set {pool} 1 " in services["airflow-init"]["command"][-1]


def test_spark_defaults_have_a_value_each_and_name_files_that_exist() -> None:
    lines = (EXAMPLES / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    assert all(name.startswith("spark.") for name in settings)
    log4j = settings["spark.driver.extraJavaOptions"].rpartition("file:/opt/loader/infra/")[2]
    assert (INFRA / log4j).is_file()


def test_the_dashboard_and_the_alerts_use_gauges_that_exist() -> None:
    values = [*gauges(LAG), unreadable("shop")]
    known = set(re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", prometheus_text(values), re.MULTILINE))
    alerts = yaml.safe_load((EXAMPLES / "prometheus-alerts.yaml").read_text())
    expressions = [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    expressions += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for expression in expressions for name in re.findall(r"binlog_loader_\w+", expression)}
    assert used - known == set()
    assert known - used == {"binlog_loader_log_position"}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) == 14


def test_the_page_of_monitoring_has_every_gauge() -> None:
    page = (INFRA.parent / "docs" / "how-to" / "monitoring.md").read_text()
    known = set(re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", prometheus_text(gauges(LAG)), re.MULTILINE))
    assert set(re.findall(r"`(binlog_loader_\w+)`", page.partition("| gauge |")[2].partition("\n\n")[0])) == known
