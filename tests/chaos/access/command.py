"""The `loader` command as a user runs it: a configuration, a process, one JSON document."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from infra.s3server import S3Server
from infra.servers import Server
from tests.chaos.access.modes import rules
from tests.chaos.access.source import DATABASE


@cache
def jars(*lock: Path) -> str:
    """The folder of Spark's jars, or of those of another lock file."""
    done = subprocess.run(
        [sys.executable, ROOT / "infra" / "jars.py", *lock], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout.strip().splitlines()[-1]


BUCKET = "staged"
ROOT = Path(__file__).resolve().parents[3]
_SQLITE = "busy_timeout=60000&journal_mode=WAL"
_GRANTS = (
    "CREATE USER 'loader'@'%'",
    "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'loader'@'%'",
    "GRANT SELECT ON *.* TO 'loader'@'%'",
)


def grants(kind: str) -> list[str]:
    """Return what makes the loader's user. On MariaDB tables have virtual columns, for which it needs TRIGGER."""
    if kind != "mariadb":
        return [*_GRANTS]
    return [
        *(one.replace("REPLICATION CLIENT", "BINLOG MONITOR") for one in _GRANTS),
        "GRANT TRIGGER ON *.* TO 'loader'@'%'",
    ]


@dataclass
class Ended:
    """What one run of the command left."""

    arguments: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The JSON document, None if there is none."""
        try:
            return json.loads(self.stdout)
        except ValueError:
            return None

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Every error in the document, that of the command and those of tables."""
        found: list[dict[str, Any]] = []
        _collect(self.document, found)
        return found


def _collect(value: Any, found: list[dict[str, Any]]) -> None:
    if isinstance(value, dict):
        if {"error", "what", "hint"} <= value.keys():
            found.append(value)
        for one in value.values():
            _collect(one, found)
    elif isinstance(value, list):
        for one in value:
            _collect(one, found)


@dataclass
class Command:
    """The loader for one server, with a staging root and a warehouse in a folder."""

    home: Path
    server: Server
    catalog: str
    transport: str = "network"
    master: str = "local[2]"
    s3: S3Server | None = None
    """Where files are staged, if not in a folder; its bucket is called like the database."""
    extra: list[str] = field(default_factory=list)
    """Lines of the source's section."""
    excluded: list[str] = field(default_factory=list)
    """Tables that match the pattern and are not captured."""
    every: str = ""
    """How often tables are merged, such as `1h`; with every run if empty."""
    pattern: str = f"{DATABASE}.*"
    """Of the captured tables."""
    keeps_columns: bool = False
    """Whether tables that keep more keep the columns that are dropped."""

    @property
    def config(self) -> Path:
        return self.home / "loader.toml"

    @property
    def environment(self) -> dict[str, str]:
        # Cures are commands as a person would paste them: `loader` is found on the PATH.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        store = self.s3.environment if self.s3 else {}
        return os.environ | store | {"PATH": path, "LOADER_CONFIG": str(self.config)}

    def configure(self) -> None:
        """Write loader.toml for the server and the options of now."""
        self.home.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(self.extra)
        every = f'every = "{self.every}"' if self.every else ""
        kept = f'{every}\non_drop = "keep"' if self.keeps_columns else every
        self.config.write_text(f"""
[staging]
{self._staging()}
[warehouse]
{self._warehouse()}
[spark]
master = "{self.master}"
jars = "{jars()}"
{self._spark()}
[sources.chaos]
host = "{self.server.host}"
port = {self.server.port}
user = "loader"
transport = "{self.transport}"
log_files = "{self.server.log_dir}"
part_bytes = 65536
chunk_rows = 50
tables.include = ["{self.pattern}"]
tables.exclude = {json.dumps([f"{DATABASE}.{name}" for name in self.excluded])}
{lines}
{rules(self.pattern.partition(".")[0], kept)}
[[sources.chaos.rules]]
tables = ["{self.pattern}"]
on_misfit = "null"
{every}
""")

    def warm(self) -> None:
        """Archive the classes of Spark, once on a machine: each job starts some seconds sooner."""
        self.run("warm", "--jars", jars())

    def run(self, *arguments: str, kill_after: float | None = None) -> Ended:
        """Run the command with --json; kill it and its children after so many seconds, if given."""
        argv = [sys.executable, "-m", "loader", "--json", *arguments]
        return self._ended(argv, arguments, kill_after)

    def shell(self, line: str) -> Ended:
        """Run a line in a shell, as it was printed."""
        return self._ended(["bash", "-c", line], (line,), None)

    def _ended(self, argv: list[str], arguments: tuple[str, ...], kill_after: float | None) -> Ended:
        process = subprocess.Popen(
            argv, cwd=self.home, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            stdout, stderr = process.communicate(timeout=kill_after or 900)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            if not kill_after:
                stderr += "\nthe command did not end within 900 s"
        if process.returncode not in {0, -signal.SIGKILL}:
            with (self.home / "failed.log").open("a", encoding="utf-8") as log:
                log.write(f"$ {shlex.join(argv)} -> {process.returncode}\n{stdout}\n{stderr}\n")
        return Ended(arguments, process.returncode, stdout, stderr)

    def _staging(self) -> str:
        if self.s3 is None:
            return f'root = "file://{self.home}/staging"'
        return f'root = "s3://{BUCKET}/staging"\ns3 = {{ endpoint = "{self.s3.endpoint}" }}'

    def _warehouse(self) -> str:
        if self.catalog == "hadoop":
            return f'path = "{self.home}/warehouse"'
        return (
            f'type = "jdbc"\nuri = "jdbc:sqlite:{self.home}/catalog.db?{_SQLITE}"\npath = "file://{self.home}/warehouse"\n'
            'properties = { "jdbc.schema-version" = "V1" }'
        )

    def _spark(self) -> str:
        conf = '"spark.driver.memory" = "1g"'
        if self.catalog == "sqlite":
            conf += f', "spark.driver.extraClassPath" = "{jars(ROOT / "tests" / "jars.lock")}/*"'
        return f"conf = {{ {conf} }}"
