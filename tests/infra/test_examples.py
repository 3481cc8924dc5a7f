"""The files for production parse, and name what exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

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
    for connection in connections.values():
        assert connection["conn_type"] == "spark"
        assert connection["host"], "without a host the provider takes yarn"


def test_pools_of_the_design() -> None:
    pools = json.loads((INFRA / "airflow/pools.json").read_text())
    assert {name: pool["slots"] for name, pool in pools.items()} == {"spark": 1, "mysql_source": 2}


def test_spark_defaults_have_a_value_each_and_name_files_that_exist() -> None:
    lines = (EXAMPLES / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    assert all(name.startswith("spark.") for name in settings)
    log4j = settings["spark.driver.extraJavaOptions"].rpartition("file:/opt/loader/infra/")[2]
    assert (INFRA / log4j).is_file()
