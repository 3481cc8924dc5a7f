"""What the demo stands on: a folder, a server of its own, a configuration, and Airflow in a process beside it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

from loader.errors import LoaderError
from loader.jars.resolve import spark_jars
from loader.resources import folder
from loader.submit import SparkSettings, configuration, environment
from loader.transport.address import ServerAddress


def demo_folder() -> Path:
    """Where the demo keeps everything: below $LOADER_CACHE or ~/.cache/binlog-loader."""
    base = os.environ.get("LOADER_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "binlog-loader") / "demo"


class DemoServer:
    """A real server, started and stopped by the scripts that ship with the loader."""

    def __init__(self, home: Path, kind: str | None) -> None:
        self._data = home / "mysql"
        self._kind = ["--kind", kind] if kind else []
        self.description = ""

    def start(self) -> ServerAddress:
        """Fetch it if need be, start it empty, and return its address.

        Raises:
            LoaderError: no server can be had here; the text says what was tried.
        """
        facts = json.loads(self._script("start", *self._kind, "--json"))
        self.description = f"{facts['kind']} {facts['version']} on {facts['host']}:{facts['port']}"
        return ServerAddress(host=facts["host"], port=facts["port"], user=facts["user"])

    def stop(self) -> None:
        """Shut it down; its data stays for `make airflow`."""
        self._script("stop")

    def _script(self, *arguments: str) -> str:
        scripts = folder("servers")
        packed = scripts.parent.name == "loader"
        module = "loader._servers" if packed else "infra.servers"
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments, "--data-dir", str(self._data)],
            cwd=None if packed else scripts.parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LoaderError(
                "the demo's server cannot be had", why=(done.stderr or done.stdout).strip()[-2000:],
                hint="see what was tried above; a mysqld or mariadbd on PATH is enough",
            )  # fmt: skip
        return done.stdout


def demo_jars() -> str:
    """The folder with Iceberg's jar: $LOADER_JARS, else fetched.

    Raises:
        LoaderError: it cannot be fetched.
    """
    return os.environ.get("LOADER_JARS") or str(spark_jars())


def write_configuration(home: Path, server: ServerAddress, jars: str) -> Path:
    """The demo's loader.toml, and a script `query` that runs SQL on the tables."""
    shutil.rmtree(home / "staging", ignore_errors=True)
    shutil.rmtree(home / "warehouse", ignore_errors=True)
    config = home / "loader.toml"
    config.write_text(
        f"""# Written by the demo; a configuration of your own looks the same.
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
    conf = configuration(settings) | {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(home / "warehouse"),
    }
    lines = [f"  --conf '{name}={value}' \\" for name, value in conf.items()]
    script = home / "query"
    script.write_text(
        '#!/bin/sh\n# Runs SQL on the demo\'s tables: query "SELECT * FROM lake.shop.orders LIMIT 5"\n'
        f"export SPARK_LOCAL_IP=127.0.0.1 SPARK_HOME='{environment(settings)['SPARK_HOME']}'\n"
        f'exec "$SPARK_HOME/bin/spark-sql" --master "local[2]" \\\n' + "\n".join(lines) + '\n  -e "$1"\n',
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
