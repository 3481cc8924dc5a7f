"""The image and the services of the examples are executed, as far as this is possible without a container engine.

The commands run in a folder instead of a container, with a virtual environment as the image's Python and the servers of
the tests as services. Not executed: commands that need root or change the machine (`image.SYSTEM`); of packages of the
distribution only the names are checked. Jars come from the cache of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from infra.servers import start_server
from infra.servers.process import free_port
from infra.servers.server import Server
from loader.errors import LoaderError
from loader.resources import cache_folder
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.e2e.airflow.running.server import until
from tests.infra.compose import Services, client, database, mount, read_services, server_options
from tests.infra.image import SYSTEM, Image, commands, instructions, is_sent
from tests.support.replicas import run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "infra" / "examples"
DOCKERFILE = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (EXAMPLES / "Dockerfile.dockerignore").read_text(encoding="utf-8")
SECRETS = {
    "MYSQL_ROOT_PASSWORD": "of-root",
    "POSTGRES_PASSWORD": "of-postgres",
    "SHOP_PASSWORD": "of-the-shop",
    "JWT_SECRET": "a" * 128,
    "API_SECRET_KEY": "b" * 128,
    "FERNET_KEY": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
}


def test_only_known_commands_need_the_distribution() -> None:
    found = [command for name, rest in instructions(DOCKERFILE) if name == "RUN" for command in commands(rest)]
    assert [command for command in found if command.startswith(SYSTEM)] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends openjdk-17-jre-headless",
        "rm -rf /var/lib/apt/lists/*",
        "useradd --create-home --uid 50000 airflow",
        "chown -R airflow /opt/airflow /opt/loader /lake",
    ]
    for command in found:
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_users_are_created_before_they_are_used() -> None:
    text = DOCKERFILE.partition("useradd")[2]
    assert "airflow" in text.splitlines()[0]
    assert text.index("USER airflow") < text.index("--chown=airflow")
    assert "USER" not in DOCKERFILE.partition("useradd")[0]


def test_packages_are_in_the_distribution() -> None:
    base = next(rest for name, rest in instructions(DOCKERFILE) if name == "FROM")
    codename = base.rpartition("-")[2]
    if shutil.which("apt-cache") is None or f"VERSION_CODENAME={codename}\n" not in Path("/etc/os-release").read_text():
        pytest.skip(f"this machine is not Debian {codename}")
    shown = subprocess.run(
        ["apt-cache", "show", "openjdk-17-jre-headless"], capture_output=True, text=True, check=False
    )
    if not shown.stdout and not list(Path("/var/lib/apt/lists").glob("*Packages*")):
        pytest.skip("apt has no lists of packages here")
    assert "Package: openjdk-17-jre-headless\n" in shown.stdout


def test_the_image_gets_what_it_copies_and_no_secrets() -> None:
    for path in ("constraints.txt", "dist/binlog_loader-0.1.0-py3-none-any.whl", "infra/spark/log4j2.properties"):
        assert is_sent(path, IGNORED), path
    for path in ("infra/examples/.env", "infra/examples/tls/server-key.pem", ".git/config", "loader.toml"):
        assert not is_sent(path, IGNORED), path
    git_ignored = subprocess.run(
        ["git", "check-ignore", "infra/examples/.env", "infra/examples/tls/server-key.pem"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    assert len(git_ignored.splitlines()) == 2 or not (ROOT / ".git").exists()


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the folder, with the certificates of a server that is also called localhost."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("tls", ".env"))
    subprocess.run([folder / "certificates.sh", "mysql", "localhost"], check=True)
    return folder


@pytest.fixture
def source(examples: Path, tmp_path: Path) -> Iterator[Server]:
    """The service of MySQL, with its user."""
    image = Image(tmp_path / "root", tmp_path)
    services = read_services((examples / "compose.yaml").read_text(), SECRETS)
    mount(image, services, examples)
    with start_server("mysql", tmp_path / "mysql", server_options(services["mysql"], image)) as server:
        run(server, "CREATE DATABASE shop")
        programs = tmp_path / "programs"
        programs.mkdir()
        client(programs, server, "mysql")
        environment = {**os.environ, **SECRETS, "PATH": f"{programs}:{os.environ['PATH']}"}
        subprocess.run([examples / "source-user.sh"], env=environment, check=True)
        yield server


@pytest.mark.integration
def test_the_source_is_verified_by_its_certificate(
    source: Server, examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRETS["SHOP_PASSWORD"])
    authority = str(examples / "tls" / "ca.pem")
    address = ServerAddress(
        host="localhost", port=source.port, user="loader", password="env:SHOP_PASSWORD", tls_ca=authority
    )
    unknown = address.model_copy(update={"tls_ca": "", "tls": "required"})
    with pytest.raises(LoaderError, match="certificate of the server is not trusted"), connected(unknown):
        pass
    with connected(address) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cursor.fetchone()[1]
        cursor.execute("SHOW BINARY LOGS")
        assert cursor.fetchall()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image, built as the head of the Dockerfile says, from what its context has."""
    folder = tmp_path_factory.mktemp("image")
    context, root = folder / "context", folder / "root"
    uv = str(ROOT / "infra" / "uv.sh")
    # The Python of the image, if this machine has it.
    version = (
        next(rest for name, rest in instructions(DOCKERFILE) if name == "FROM").partition(":")[2].partition("-")[0]
    )
    find = [uv, "python", "find", "--no-python-downloads", version]
    python = subprocess.run(find, capture_output=True, text=True, check=False).stdout.strip() or sys.executable
    for command in (
        ["build", "--wheel", "--out-dir", str(context / "dist")],
        ["venv", "--quiet", "--seed", "--python", python, str(root / "venv")],
    ):
        done = subprocess.run([uv, *command], cwd=ROOT, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for path in (path for path in listed.splitlines() if is_sent(path, IGNORED)):
        (context / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, context / path)
    (root / "opt" / "loader" / "cache").mkdir(parents=True)
    (root / "opt" / "loader" / "cache" / "jars").symlink_to(cache_folder() / "jars")
    built = Image(root, context)
    built.build(DOCKERFILE)
    return built


@pytest.mark.sweep
@pytest.mark.e2e
@pytest.mark.timeout(2400)
def test_the_image_has_airflow_the_jars_and_the_dags(image: Image) -> None:
    assert image.run(image.command).strip() == image.run(["python", "-m", "airflow", "version"]).strip() != ""
    assert list((image.folder / "jars").glob("iceberg-spark-runtime*.jar"))
    assert (image.folder / "dags" / "loader_dags.py").is_file() or list((image.folder / "dags").glob("*.py"))
    assert list((image.folder / "cache" / "kernels").glob("*/*.o"))
    assert len(image.not_executed) == 5


@pytest.mark.sweep
@pytest.mark.e2e
@pytest.mark.timeout(2400)
def test_the_services_load_and_follow_a_table(image: Image, source: Server, examples: Path) -> None:
    run(source, "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(9))")
    run(source, "INSERT INTO shop.orders VALUES (1, 'a'), (2, 'b')")
    services = read_services((examples / "compose.yaml").read_text(), SECRETS)
    mount(image, services, examples)
    configuration = Path(image.placed("/etc/loader/loader.toml"))
    text = configuration.read_text().replace('host = "mysql"', f'host = "localhost"\nport = {source.port}')
    configuration.write_text(image.placed(text))
    with database(image, services) as postgres:
        airflow = Services(image, services, free_port(), postgres)
        airflow.initialise()
        assert '"conn_id": "spark_default"' in airflow.run("airflow", "connections", "list", "--output", "json")
        with airflow.started():
            _dag_run(airflow, "shop.initial_load")
            assert _rows(image) == [(1, "a"), (2, "b")]
            run(source, "UPDATE shop.orders SET name = 'z' WHERE id = 2")
            run(source, "INSERT INTO shop.orders VALUES (3, 'c')")
            _dag_run(airflow, "shop.delta")
            assert _rows(image) == [(1, "a"), (2, "z"), (3, "c")]


def _dag_run(airflow: Services, dag: str) -> None:
    """Run a DAG once it is known, and wait until it succeeds."""
    until(f"{dag} to be known", lambda: dag in airflow.run("airflow", "dags", "list", "--output", "plain"))
    airflow.run("airflow", "dags", "unpause", dag)
    airflow.run("airflow", "dags", "trigger", dag, "--run-id", "by_hand")

    def state() -> str:
        lines = airflow.run("airflow", "dags", "list-runs", dag, "--output", "json").splitlines()
        listed = json.loads(next(line for line in lines if line.startswith("[{")))  # log lines come before it
        (found,) = (one["state"] for one in listed if one["run_id"] == "by_hand")
        return found if found in {"success", "failed"} else ""

    ended = until(f"{dag} to end", state)
    logs = sorted((airflow.image.root / "opt" / "airflow" / "logs").rglob("*.log"))
    assert ended == "success", "\n".join(log.read_text()[-3000:] for log in logs)


def _rows(image: Image) -> list[tuple[Any, ...]]:
    files = (image.root / "lake" / "warehouse" / "shop" / "orders" / "metadata").glob("v*.metadata.json")
    newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]))
    rows = StaticTable.from_metadata(str(newest)).scan().to_arrow().select(["id", "name"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)
