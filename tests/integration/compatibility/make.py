"""Make `earlier.tar.gz`: what a version of the loader leaves behind, for the tests of later versions.

Run it with the version to keep, and a folder of its jars: `python -m tests.integration.compatibility.make JARS`. The
metadata of Iceberg names the folder, so the test unpacks the archive at the same place.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from infra.servers import start_server

HOME = Path("/tmp/binlog-loader-earlier")  # noqa: S108 - one place on every machine

_TABLES = {
    "plain": "id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(12,3), at DATETIME(6), raw VARBINARY(20), doc JSON,"
    " e ENUM('a','b,c')",
    "bag": "n INT, word VARCHAR(20)",
    "kept": "id BIGINT PRIMARY KEY, v VARCHAR(20)",
    "events": "id INT PRIMARY KEY, v INT",
    "stopped": "id INT PRIMARY KEY, day DATE",
    "renamed": "a VARCHAR(10) COLLATE utf8mb4_bin, b INT, v TEXT, PRIMARY KEY (a, b)",
}
_APPLIED = (
    "UPDATE plain SET price = price + 1 WHERE id % 3 = 0",
    "DELETE FROM plain WHERE id > 110",
    "DELETE FROM bag WHERE n = 3 LIMIT 4",
    "INSERT INTO bag VALUES (9, 'nine'), (9, 'nine')",
    "DELETE FROM kept WHERE id < 10",
    "UPDATE events SET v = v * 2 WHERE id < 5",
    "INSERT INTO stopped VALUES (500, '0000-00-00')",
    "UPDATE renamed SET a = CONCAT(a, '!') WHERE b < 20",
)
_STAGED = (
    "ALTER TABLE plain ADD COLUMN more INT DEFAULT 7",
    "INSERT INTO plain (id, name, more) VALUES (1000, 'tab\\t\"quote\" \\\\n', 8)",
    "DROP TABLE events",
    "CREATE TABLE events (id INT PRIMARY KEY, v INT)",
    "INSERT INTO events VALUES (1, -1)",
    "FLUSH BINARY LOGS",
    "RENAME TABLE renamed TO named",
    "DELETE FROM named WHERE b > 100",
    "START TRANSACTION",
    "UPDATE kept SET v = 'changed' WHERE id = 20",
    "DELETE FROM kept WHERE id = 21",
    "COMMIT",
)
_PLANNED = (
    "UPDATE plain SET name = NULL WHERE id = 1000",
    "INSERT INTO kept VALUES (5, 'again')",
    "DELETE FROM bag WHERE n = 9 LIMIT 1",
    "TRUNCATE TABLE named",
    "INSERT INTO named VALUES ('z', 1, '')",
)


@dataclass
class _Site:
    """The server, and the configuration with which the `loader` command runs."""

    connection: Connection[Any]
    config: Path

    def execute(self, *statements: str) -> None:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, table: str) -> list[list[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            return sorted(([plain(value) for value in row] for row in cursor.fetchall()), key=repr)

    def loader(self, *arguments: str, code: int = 0) -> Any:
        argv = [sys.executable, "-m", "loader", "--config", str(self.config), "--json", *arguments]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)


def plain(value: Any) -> Any:
    """Return a value of a row as JSON has it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def configuration(jars: str, port: int, log: Path) -> str:
    """Return the text of a loader.toml; nothing needs to listen on the port once intervals are planned."""
    return f"""
[staging]
root = "file://{HOME}/staging"
[warehouse]
name = "earlier"
path = "{HOME}/warehouse"
[spark]
master = "local[2]"
jars = "{jars}"
[sources.shop]
host = "127.0.0.1"
port = {port}
user = "root"
tables.include = ["shop.*"]
transport = "file"
log_files = "{log}"
chunk_rows = 50
part_bytes = 4096
[[sources.shop.rules]]
tables = ["shop.kept"]
mode = "soft_delete"
[[sources.shop.rules]]
tables = ["shop.events"]
mode = "history"
"""


def main(jars: str) -> None:
    """Write the archive next to this file."""
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir()
    server = start_server("mysql", HOME.with_name(f"{HOME.name}-server"), {"binlog_row_metadata": "FULL"})
    site = _Site(
        pymysql.connect(host="127.0.0.1", port=server.port, user="root", autocommit=True), HOME / "loader.toml"
    )
    site.config.write_text(configuration(jars, server.port, Path(server.log_dir)))
    expected = _history(site)
    (HOME / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True))
    log = HOME / "log"
    log.mkdir()
    for file in sorted(Path(server.log_dir).glob("binlog.*")):
        shutil.copy(file, log)
    (log / "binlog.index").write_text("".join(f"./{file.name}\n" for file in sorted(log.glob("binlog.0*"))))
    server.stop()
    site.config.unlink()
    with tarfile.open(Path(__file__).with_name("earlier.tar.gz"), "w:gz") as archive:
        archive.add(HOME, arcname=".")


def _history(site: _Site) -> dict[str, Any]:
    """Load the tables, apply an interval, stage one, plan one; return the rows of the server and the intervals."""
    site.execute("CREATE DATABASE shop", "USE shop", "SET SESSION sql_mode = ''")
    site.execute(*(f"CREATE TABLE {name} ({columns})" for name, columns in _TABLES.items()))
    for n in range(1, 121):
        site.execute(
            f"INSERT INTO plain VALUES ({n}, 'näme {n}', {n}.125, '2026-01-01 00:00:00.{n:06}', UNHEX('00ff{n:04x}'),"
            f" JSON_OBJECT('n', {n}), 'b,c')",
            f"INSERT INTO bag VALUES ({n % 7}, 'w{n % 3}')",
            f"INSERT INTO kept VALUES ({n}, 'v{n}')",
            f"INSERT INTO events VALUES ({n}, {n})",
            f"INSERT INTO stopped VALUES ({n}, '2026-01-01')",
            f"INSERT INTO renamed VALUES ('k{n % 5}', {n}, REPEAT('x', {n}))",
        )
    site.loader("initial-load")
    site.execute(*_APPLIED)
    site.loader("run", code=4)  # a table is quarantined
    site.execute(*_STAGED)
    site.loader("plan")
    site.loader("extract")
    site.execute(*_PLANNED)
    planned = site.loader("plan")
    tables = {table: site.rows(table) for table in ("plain", "bag", "kept", "events", "named")}
    return {"tables": tables, "intervals": site.loader("intervals"), "planned": planned}


if __name__ == "__main__":
    main(sys.argv[1])
