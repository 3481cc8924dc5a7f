"""The environment of the demo: a folder, a server, and a configuration."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from loader.errors import LoaderError, UsageError
from loader.jars.resolve import spark_jars
from loader.resources import cache_folder, folder
from loader.spark.settings import SparkSettings
from loader.spark.submit import EXTENSIONS, environment, log_settings
from loader.transport.server.address import ServerAddress

_WRITTEN = "# Written by the demo"
_MARK = ".binlog-loader-demo"
"""A file that marks the folder of a demo. The next demo may delete the content of the folder."""
_PARTS = ("mysql", "staging", "warehouse", "airflow-demo")


def demo_folder() -> Path:
    """Return the default folder of a demo: below $LOADER_CACHE or ~/.cache/binlog-loader."""
    return cache_folder() / "demo"


def clear(home: Path, server: DemoServer) -> None:
    """Delete an earlier demo.

    Raises:
        UsageError: its server is running, or the folder has other data. Nothing was deleted.
    """
    config = home / "loader.toml"
    if server.running():
        raise UsageError(
            "the server of an earlier demo is running",
            hint="stop it (make airflow: Ctrl-C), or keep it: loader demo --folder ANOTHER",
            folder=home,
        )
    ours = (home / _MARK).exists() or (config.is_file() and config.read_text(encoding="utf-8").startswith(_WRITTEN))
    if not ours and any((home / part).exists() for part in ("loader.toml", *_PARTS)):
        raise UsageError(
            "the folder has data that does not belong to a demo",
            hint=f"delete the folder if nobody needs it, or use another: loader demo --folder ANOTHER ({home})",
            folder=home,
        )
    for part in _PARTS:
        shutil.rmtree(home / part, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    (home / _MARK).touch()


class DemoServer:
    """A real server, which the shipped scripts start and stop."""

    def __init__(self, home: Path, kind: str | None) -> None:
        self._data = home / "mysql"
        self._kind = ["--kind", kind] if kind else []
        self.description = ""

    def fetch(self) -> None:
        """Download the programs of the server, unless they are installed.

        Raises:
            LoaderError: no server is available; the text says what was tried.
        """
        self._script("fetch", *self._kind)

    def running(self) -> bool:
        """Return whether a server runs on the data of the demo."""
        return (self._data / "state.json").exists() and self._run("status").returncode == 0

    def start(self) -> ServerAddress:
        """Start an empty server, and return its address.

        Raises:
            LoaderError: no server is available; the text says what was tried.
        """
        facts = json.loads(self._script("start", *self._kind, "--json"))
        self.description = f"{facts['kind']} {facts['version']} on {facts['host']}:{facts['port']}"
        return ServerAddress(host=facts["host"], port=facts["port"], user=facts["user"])

    def stop(self) -> None:
        """Stop the server. Its data stays for `make airflow`."""
        self._script("stop")

    def _script(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            raise LoaderError(
                "no server is available for the demo", why=(done.stderr or done.stdout).strip()[-2000:],
                hint="read above what was tried; a mysqld or mariadbd on PATH is enough",
            )  # fmt: skip
        return done.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        scripts = folder("servers")
        packed = scripts.parent.name == "loader"
        module = "loader._servers" if packed else "infra.servers"
        return subprocess.run(
            [sys.executable, "-m", module, *arguments, "--data-dir", str(self._data)],
            cwd=None if packed else scripts.parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )


def demo_jars() -> str:
    """Return the folder with the jar of Iceberg: $LOADER_JARS, else a downloaded one.

    Raises:
        LoaderError: the jar cannot be downloaded.
    """
    return os.environ.get("LOADER_JARS") or str(spark_jars())


def write_configuration(home: Path, server: ServerAddress, jars: str) -> Path:
    """Write loader.toml, and a script `query` that runs SQL on the tables; return the path of loader.toml."""
    config = home / "loader.toml"
    config.write_text(
        f"""{_WRITTEN}; a configuration of your own looks the same.
[staging]
root = "file://{home}/staging"

[warehouse]
name = "lake"
type = "hadoop"
path = "{home}/warehouse"

[spark]
master = "local[2]"
jars = "{jars}"

[sources.shop]
host = "{server.host}"
port = {server.port}
user = "{server.user}"
tables.include = ["shop.*"]
chunk_rows = 20000
""",
        encoding="utf-8",
    )
    _write_query(home, SparkSettings(master="local[2]", jars=jars))
    return config


def _write_query(home: Path, settings: SparkSettings) -> None:
    """Return a script that works without the checkout, with the Spark of this Python or of any other."""
    shutil.copyfile(log_settings(), home / "log4j2.properties")
    shown = (home / "log4j2.properties").as_uri()
    conf = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={shown}",
        "spark.driver.extraClassPath": f"{settings.jars}/*",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(home / "spark-warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(home / "warehouse"),
    }
    lines = " \\\n".join(f"  --conf {shlex.quote(f'{name}={value}')}" for name, value in conf.items())
    script = home / "query"
    script.write_text(
        _QUERY.format(home=shlex.quote(environment(settings)["SPARK_HOME"]), conf=lines), encoding="utf-8"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


_QUERY = """#!/bin/sh
# Runs SQL on the demo's tables: query "SELECT * FROM lake.shop.orders LIMIT 5"
SPARK_HOME={home}
[ -d "$SPARK_HOME" ] || SPARK_HOME=$(python3 -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))') || {{
    echo "error: the Spark of this demo is gone; put a python3 with pyspark on PATH" >&2
    exit 1
}}
export SPARK_LOCAL_IP=127.0.0.1 SPARK_HOME
exec "$SPARK_HOME/bin/spark-sql" --master "local[2]" \\
{conf} \\
  -e "$1"
"""
