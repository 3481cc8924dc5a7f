"""What many tables, and many sources, cost: each command beside the same command with a tenth of them.

    python -m tests.bench.many [--quick] [--json FILE]

A ratio is the time with all of them divided by the time with a tenth of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from infra.servers import Server
from loader.spark.settings import SparkSettings
from loader.spark.submit import warm
from tests.bench.configuration import source_table, write_config
from tests.bench.figures import parser, report
from tests.bench.initial import Cost, run
from tests.bench.session import jars
from tests.bench.tables import connected, empty_server

_TABLES, _SOURCES = 1000, 50
_COLUMNS = "id INT PRIMARY KEY, a INT, b VARCHAR(40), c DECIMAL(12,2), d DATETIME"
_ROWS = ", ".join(f"({number}, {number}, 'text', 1.5, NOW())" for number in range(10))
_PARSE = "from loader.airflow.dags.source_dags import source_dags; print(len(source_dags()))"


def make_tables(server: Server, schema: str, count: int) -> None:
    """Make a schema of small tables. It is not logged."""
    with connected(server) as cursor:
        cursor.execute(f"CREATE DATABASE {schema}")
        for number in range(count):
            cursor.execute(f"CREATE TABLE {schema}.t{number} ({_COLUMNS})")
            cursor.execute(f"INSERT INTO {schema}.t{number} VALUES {_ROWS}")


def change_tables(server: Server, schema: str, count: int) -> None:
    """Change a row in each of the first tables of a schema."""
    with connected(server) as cursor:
        cursor.execute("SET sql_log_bin = 1")
        for number in range(count):
            cursor.execute(f"UPDATE {schema}.t{number} SET a = a + 1 WHERE id = 1")


def command(config: Path, *arguments: str) -> Cost:
    """Run a command of the loader."""
    argv = [sys.executable, "-m", "loader", "--config", str(config), *arguments]
    return run(argv, config.parent, done_codes=(0, 4) if "doctor" in arguments else (0,))  # 4: it has warnings


def measure_tables(count: int) -> dict[str, Cost]:
    """Return the cost of each command for a source with this number of tables."""
    with TemporaryDirectory(prefix="loader-bench-") as name, empty_server() as server:
        make_tables(server, "many", count)
        config = write_config(Path(name), server, files=False, schema="many")
        costs = {"doctor": command(config, "doctor"), "initial-load": command(config, "initial-load")}
        change_tables(server, "many", count)
        costs["run, all tables changed"] = command(config, "run")
        change_tables(server, "many", 1)
        costs["run, one table changed"] = command(config, "run")
        costs["run, quiet"] = command(config, "run")
        costs["status"] = command(config, "status")
        return costs


def measure_sources(count: int) -> dict[str, Cost]:
    """Return the cost of each command if the configuration has this number of sources, each with one table."""
    with TemporaryDirectory(prefix="loader-bench-") as name, empty_server() as server:
        names = [f"source{number}" for number in range(count)]
        for source in names:
            make_tables(server, source, 1)
        folder = Path(name)
        config = write_config(folder, server, files=False, schema=names[0])
        with config.open("a", encoding="utf-8") as file:
            file.writelines(source_table(source, server, f"{source}.*") for source in names[1:])
        first = ("--source", names[0])
        for source in names:
            command(config, "begin", "--at", "end", "--source", source)
        costs = {"initial-load": command(config, "initial-load", *first)}
        change_tables(server, names[0], 1)
        costs["run"] = command(config, "run", *first)
        costs["run, quiet"] = command(config, "run", *first)
        costs["status of one"] = command(config, "status", *first)
        costs["status of all"] = command(config, "status", "--format", "prometheus")
        costs["DAGs"] = run([sys.executable, "-c", _PARSE], folder, {"LOADER_CONFIG": str(config)})
        return costs


def _figures(count: int, what: str, all_of_them: dict[str, Cost], tenth: dict[str, Cost]) -> Iterator[dict[str, Any]]:
    for name, cost in all_of_them.items():
        yield {
            "command": f"{name}, {count:,} {what}",
            "ratio": round(cost.seconds / tenth[name].seconds, 2),
            "seconds": round(cost.seconds, 1),
            "CPU seconds": round(cost.cpu, 1),
            "MB": round(cost.megabytes),
        }


def measure(tables: int, sources: int) -> Iterator[dict[str, Any]]:
    """Yield the figures of each command."""
    warm(SparkSettings(master="local[2]", jars=jars()))  # as an installation does, with `loader warm --jars`
    yield from _figures(tables, "tables", measure_tables(tables), measure_tables(tables // 10))
    yield from _figures(sources, "sources", measure_sources(sources), measure_sources(sources // 10))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of each command."""
    given = parser(__doc__, "a tenth of the tables and sources").parse_args(arguments)
    part = 10 if given.quick else 1
    os.sync()
    report(measure(_TABLES // part, _SOURCES // part), given.json)


if __name__ == "__main__":
    sys.exit(main())
