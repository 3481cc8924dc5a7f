"""Initial loads by the command: under writes, killed anywhere, with refused tables. PyIceberg reads the warehouse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyiceberg.table import StaticTable

from infra.servers import start_server
from infra.servers.server import Server
from tests.e2e.loaded import Loaded
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.test_many_tables import ONLY_MARIADB, REFUSED
from tests.integration.initial_load.writes.test_under_writes import KEYS, Writer, create_tables

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

POINTS = (
    "plan.before",
    "plan.after",
    "part.before:9",
    "part.after:9",
    "chunk.before:9",
    "chunk.after:9",
    "manifest.before",
    "manifest.after",
    "table.before",
    "insert.after",
    "publish.before",
    "publish.after",
)
"""Where an initial load can be killed."""
_TABLES = 300
_LATE = {
    "no_date": (
        ("CREATE TABLE no_date (id INT PRIMARY KEY, d DATE)", "INSERT INTO no_date VALUES (1, '0000-00-00')"),
        "does not fit",
    ),
}
"""Tables that are refused when their rows go into the warehouse."""


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with ExitStack() as cleanup:
        started = start_server(request.param, tmp_path / "server")
        cleanup.callback(started.kill)
        yield started


def configured(server: Server, home: Path, jars: str, limits: str = "") -> tuple[Loaded, SourceServer]:
    """The command, and the server with a schema for the test, without tables."""
    found, source = Loaded(server, home, jars), SourceServer(server)
    found.configure()
    text = (
        found.config.read_text().replace("shop.*", f"{source.schema}.*").replace("chunk_rows = 500", "chunk_rows = 100")
    )
    exclude = f'tables.exclude = ["{source.schema}.other_*"]\n'
    found.config.write_text(f"{text}{exclude}[sources.shop.initial_load]\n{limits}\n")
    found.execute("CREATE USER 'loader'@'%'", "GRANT ALL ON *.* TO 'loader'@'%'")
    return found, source


def warehouse_rows(home: Path, schema: str, table: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table of the warehouse, without the columns of the loader."""
    files = (home / "warehouse" / schema / table / "metadata").glob("v*.metadata.json")
    newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]))
    arrow = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    names = [name for name in arrow.column_names if not name.startswith("_")]
    return Counter(zip(*(arrow.column(name).to_pylist() for name in names), strict=True))


def server_rows(server: Server, schema: str, table: str) -> Counter[tuple[Any, ...]]:
    with (
        pymysql.connect(host=server.host, port=server.port, user="root", charset="utf8mb4") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SELECT * FROM {schema}.{table}")
        return Counter(cursor.fetchall())


def check_tables(server: Server, home: Path, schema: str) -> None:
    for table in KEYS:
        assert warehouse_rows(home, schema, table) == server_rows(server, schema, table), table


@pytest.mark.timeout(600)
@pytest.mark.parametrize("readers", [1, 2, 4])
def test_a_load_while_others_write(server: Server, tmp_path: Path, jars: str, readers: int) -> None:
    command, source = configured(server, tmp_path / "loader", jars, f"readers = {readers}\nmax_threads_running = 100")
    create_tables(source)
    writers = [Writer(source, seed) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        command.json("initial-load")
        for writer in writers:
            writer.goes_on(5)
    finally:
        for writer in writers:
            writer.stop()
    command.json("run")
    check_tables(server, command.home, source.schema)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("readers", [1, 2, 4])
def test_a_load_that_is_killed_anywhere(server: Server, tmp_path: Path, jars: str, readers: int) -> None:
    command, source = configured(server, tmp_path / "loader", jars, f"readers = {readers}")
    create_tables(source)
    writer = Writer(source, 1)
    writer.start()
    died = {}
    try:
        for point in POINTS:
            died[point] = command.loader("initial-load", "--again", LOADER_FAILPOINT=point).returncode
            command.json("initial-load")
    finally:
        writer.stop()
    command.json("run")
    assert {point: code in (-9, 3) for point, code in died.items()} == dict.fromkeys(POINTS, True), died
    check_tables(server, command.home, source.schema)


@pytest.mark.timeout(1800)
def test_many_tables_of_which_some_are_refused(server: Server, tmp_path: Path, jars: str) -> None:
    command, source = configured(server, tmp_path / "loader", jars)
    names = [f"t{number:03}" for number in range(_TABLES)]
    for name in names:
        source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1), (2)")
    refused = REFUSED | (ONLY_MARIADB if server.kind == "mariadb" else {})
    source.run(*(statement for statement, _ in refused.values()))
    source.run(*(statement for statements, _ in _LATE.values() for statement in statements))
    done = command.loader("initial-load")
    assert done.returncode == 4, done.stderr
    wanted = {name: what for name, (_, what) in refused.items()} | {name: what for name, (_, what) in _LATE.items()}
    for name, what in wanted.items():
        (error,) = [part for part in done.stderr.split("error:") if f"{source.schema}.{name}" in part]
        assert what in error
        assert "what to do:" in error
    for name in names:
        assert warehouse_rows(command.home, source.schema, name) == Counter([(1,), (2,)])
    forecast = command.json("initial-load", "--dry-run", code=4)
    assert {table["table"].partition(".")[2] for table in forecast["tables"] if table["error"]} == set(wanted) - {
        "no_text", "no_date"
    }  # fmt: skip
