"""The demo: load a shop from a real server, follow its changes with Airflow, and compare every row."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from loader.cli.demo.dags import Airflow
from loader.cli.demo.shop import TABLES, Writer, create_shop
from loader.cli.demo.stage import DemoServer, clear, demo_jars, write_configuration
from loader.cli.output import Output
from loader.config.file import load_config
from loader.settings import SourceSettings
from loader.spark.submit import run as submit
from loader.transport.server.address import ServerAddress
from loader.verify.spec import CompareResult, CompareSpec

_DIFFERENT = 4


@dataclass
class _Tally:
    """Rows that the runs changed in each table."""

    loaded: Counter[str] = field(default_factory=Counter)
    inserts: Counter[str] = field(default_factory=Counter)
    updates: Counter[str] = field(default_factory=Counter)
    deletes: Counter[str] = field(default_factory=Counter)
    positions: dict[str, str] = field(default_factory=dict)

    def add_load(self, result: dict[str, Any]) -> None:
        """Count an initial load."""
        for table in result["tables"]:
            self.loaded[table["table"]] += table["inserts"]
            self.positions[table["table"]] = table["position"]

    def add_delta(self, interval: dict[str, Any], result: dict[str, Any]) -> None:
        """Count a delta. It also brings a table without changes to its stop."""
        for table in result["tables"]:
            name = table["table"]
            if table["status"] == "applied":
                self.inserts[name] += table["inserts"]
                self.updates[name] += table["updates"]
                self.deletes[name] += table["deletes"]
            self.positions[name] = interval["stop"]


def run_demo(output: Output, home: Path, kind: str | None, rows: int, deltas: int) -> None:
    """Run the demo in a folder, from which an earlier demo is deleted, and print the result.

    Raises:
        LoaderError: a step failed, or the folder is in use. In the latter case nothing was deleted.
        typer.Exit: a row differs; with exit code 4.
    """
    jars = demo_jars()
    server = DemoServer(home, kind)
    with _step(output, "looking for a server"):
        server.fetch()
    clear(home, server)  # deleted only when everything for a new demo is available
    with _step(output, "starting a server") as said:
        address = server.start()
        said(server.description)
    try:
        config = write_configuration(home, address, jars)
        settings = load_config(str(config)).source()
        tally = _follow(output, home, config, address, rows, deltas)
        with _step(output, "comparing every row and column"):
            compared = _compare(settings)
    finally:
        server.stop()
    _report(output, home, tally, compared)


def _follow(output: Output, home: Path, config: Path, address: ServerAddress, rows: int, deltas: int) -> _Tally:
    tally = _Tally()
    with _step(output, f"creating a shop of {rows:,} rows"):
        create_shop(address, rows)
    writer = Writer(address)
    with Airflow(home / "airflow-demo", config, home / "airflow.log") as airflow:
        writer.start()
        try:
            with _step(output, "DAG shop.initial_load, while a writer writes") as said:
                result = airflow.run("shop.initial_load")
                tally.add_load(result["load_tables"])
                said(f"{sum(tally.loaded.values()):,} rows")
            for number in range(1, deltas + 1):
                _delta(output, airflow, tally, f"DAG shop.delta {number}, while it writes")
        finally:
            writer.stop()
        _delta(output, airflow, tally, f"DAG shop.delta {deltas + 1}, after {writer.transactions:,} transactions")
    return tally


def _delta(output: Output, airflow: Airflow, tally: _Tally, title: str) -> None:
    with _step(output, title) as said:
        result = airflow.run("shop.delta")
        interval = result["plan_interval"]
        tally.add_delta(interval, result["materialise"])
        said(f"{interval['start']} to {interval['stop']}")


def _compare(settings: SourceSettings) -> CompareResult:
    spec = CompareSpec(server=settings.server, catalog=settings.catalog, rules=settings.rules, tables=TABLES)
    job = Path(__file__).resolve().parents[2] / "verify" / "job.py"
    return CompareResult.model_validate(submit(job, spec, settings.spark))


def _report(output: Output, home: Path, tally: _Tally, compared: CompareResult) -> None:
    columns = ("table", "rows", "loaded", "inserts", "updates", "deletes", "position", "compared", "differences")
    rows = [
        (
            table.table,
            table.server_rows,
            tally.loaded[table.table],
            tally.inserts[table.table],
            tally.updates[table.table],
            tally.deletes[table.table],
            tally.positions.get(table.table, ""),
            table.warehouse_rows,
            table.differences,
        )
        for table in compared.tables
    ]
    if output.as_json:
        output.document({"tables": [dict(zip(columns, row, strict=True)) for row in rows]})
    output.line("")
    output.rows(columns, rows)
    for table in compared.tables:
        for sample in table.samples:
            output.line(f"{table.table}: {sample}")
    if any(table.differences for table in compared.tables):
        output.line("the tables differ: this is a bug of the loader")
        raise typer.Exit(_DIFFERENT)
    output.line("")
    output.line("every row and column is equal on the server and in Iceberg. Where to look next:")
    output.line(f'  query the tables      {home}/query "SELECT status, count(*) FROM lake.shop.orders GROUP BY status"')
    output.line(f"  see the intervals     loader --config {home}/loader.toml intervals")
    output.line("  see the DAGs          make airflow")
    output.line(f"  Airflow's log         {home}/airflow.log")


@contextmanager
def _step(output: Output, title: str) -> Iterator[Any]:
    notes: list[str] = []
    began = time.monotonic()
    yield notes.append
    seconds = time.monotonic() - began
    output.line(f"{seconds:6.1f} s  {title}" + (f": {notes[0]}" if notes else ""))
