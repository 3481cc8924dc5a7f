"""A source with a small shop, loaded once, and the `loader` command run on it as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from infra.servers import start_server
from infra.servers.server import Server
from loader.cli.demo.shop import TABLES
from loader.config.file import load_config
from loader.resources import sql
from loader.spark.submit import run as submit
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from loader.verify.compare import compare
from loader.verify.spec import CompareResult, CompareSpec
from tests.e2e.changes import changes

_ROOT = Path(__file__).resolve().parents[2]
_QUICK = "-XX:TieredStopAtLevel=1"  # no job here is so long that the optimising compiler pays off


@dataclass
class Loaded:
    """The server, the folder of staging and warehouse, and the configuration.

    Attributes:
        spark: gives the Spark of the tests, in which tables are compared. Without it each comparison is a job.
    """

    server: Server
    home: Path
    jars: str
    env: dict[str, str] = field(default_factory=dict)
    spark: Callable[[], SparkSession] | None = None

    @property
    def address(self) -> ServerAddress:
        return ServerAddress(host=self.server.host, port=self.server.port, user="root")

    @property
    def config(self) -> Path:
        return self.home / "loader.toml"

    def create_user(self) -> None:
        """The user of the configuration, with what sql/source/grants.sql gives it and no more."""
        self.execute("CREATE USER 'loader'@'%'", *sql("source/grants").split(";"))

    def configure(
        self, *, password: str = "", transport: str = "network", staging: str = "", warehouse: str = ""
    ) -> None:
        """Write loader.toml; `staging` and `warehouse` are its sections, folders by default."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.config.write_text(
            f"""
[staging]
{staging or f'root = "file://{self.home}/staging"'}
[warehouse]
{warehouse or f'path = "{self.home}/warehouse"'}
[spark]
master = "local[2]"
jars = "{self.jars}"
conf = {{ "spark.driver.extraJavaOptions" = "{_QUICK}" }}
[sources.shop]
host = "{self.server.host}"
port = {self.server.port}
user = "loader"
password = "{password}"
tables.include = ["shop.*"]
transport = "{transport}"
log_files = "{self.server.log_dir}"
part_bytes = 65536
chunk_rows = 500
""",
            encoding="utf-8",
        )

    def loader(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the command in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "loader", "--config", str(self.config), *arguments],
            env=os.environ | self.env | env,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run the command with --json and return its document."""
        done = self.loader("--json", *arguments)
        assert done.returncode == code, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def execute(self, *statements: str) -> None:
        """Run statements on the server, each its own transaction."""
        with connected(self.address) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns on the server, in order."""
        with connected(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(f"SHOW COLUMNS FROM {table}")
            return [row[0] for row in cursor.fetchall()]

    def differences(self, tables: tuple[str, ...] = TABLES) -> dict[str, int]:
        """Rows that differ, by table; every table is compared whole."""
        settings = load_config(str(self.config)).source("shop")
        spec = CompareSpec(server=self.address, catalog=settings.catalog, rules=settings.rules, tables=tables)
        job = _ROOT / "loader/verify/job.py"
        result = CompareResult.model_validate(
            compare(self.spark(), spec) if self.spark else submit(job, spec, settings.spark)
        )
        return {table.table: table.differences for table in result.tables}

    def snapshots(self) -> dict[str, list[str]]:
        """Names of all metadata files of each table: unchanged when nothing was committed."""
        folder = self.home / "warehouse" / "shop"
        return {
            table.name: sorted(path.name for path in (table / "metadata").glob("*.metadata.json"))
            for table in sorted(folder.iterdir())
        }

    def staged(self) -> dict[str, bytes]:
        """Every staged file and its bytes, but for hints."""
        folder = self.home / "staging"
        files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "newest")
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


NOTHING_DIFFERS = dict.fromkeys(TABLES, 0)


def assert_loaded_and_followed(shop: Loaded, tables: tuple[str, ...]) -> None:
    """Load these tables, apply changes once, and compare all rows by the command."""
    load_and_follow(shop)
    verified = shop.json("verify")["tables"]
    assert {table["status"] for table in verified} == {"equal"}
    assert len(verified) == len(tables)


def load_and_follow(shop: Loaded) -> None:
    """Load the tables, and apply changes once."""
    assert {table["status"] for table in shop.json("initial-load")["tables"]} == {"applied"}
    shop.execute(*changes(3))
    for status in ("applied", "already"):
        assert {table["status"] for table in shop.json("run")["materialise"]["tables"]} == {status}


@contextmanager
def loaded(kind: str, metadata: str, statements: str, folder: Path, jars: str) -> Iterator[Loaded]:
    """A server of its own whose log has so much of its tables' columns, loaded after these statements, one on a line."""
    with start_server(kind, folder / "server", {"binlog_row_metadata": metadata}) as server:
        found = Loaded(server, folder / "loader", jars)
        found.configure()
        found.execute(*statements.strip().splitlines())
        found.create_user()
        found.json("initial-load")
        yield found
