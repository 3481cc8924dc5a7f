"""What an initial load costs beside `spark.read.jdbc` into Iceberg, `mysqldump` and `mydumper`, as whole processes.

    python -m tests.bench.initial [--quick] [--pairs N] [--table NAME] [--json FILE]

A ratio is the median over the pairs of one run: the loader's time divided by the peer's time right after it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NamedTuple

from infra.debian import program
from infra.servers import Server, fetch
from loader.jars.resolve import jars_folder
from loader.spark.settings import SparkSettings
from loader.spark.submit import configuration, environment, warm
from tests.bench.configuration import write_config
from tests.bench.figures import parser, report
from tests.bench.session import jars
from tests.bench.tables import SHAPES, connected, empty_server, fill, fill_many

_HERE = Path(__file__).resolve().parent
_READERS = 2
_FETCH_ROWS = 5000
_DUMPED_ROWS = 250_000
_SMALL_TABLES, _SMALL_ROWS = 300, 1000
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STAGE = f"""
from loader.config.file import load_config
from loader.pipeline import read_tables_job, run_in_threads
run_in_threads(read_tables_job(load_config().source()), {_READERS})
"""


class Cost(NamedTuple):
    """A run: its seconds by the clock, its seconds of CPU, and the largest size of all its processes together in MB."""

    seconds: float
    cpu: float
    megabytes: float


def run(
    argv: Sequence[str], folder: Path, environ: dict[str, str] | None = None, *, done_codes: Collection[int] = (0,)
) -> Cost:
    """Run a program until it ends, with its standard output in `<folder>/output`.

    Python may keep the compiled modules of a checkout, as it has those of an installed package.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    peak, done = [0.0], Event()
    began = time.monotonic()
    with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
        own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen(argv, stdout=output, stderr=errors, env={**own, **(environ or {})})
        watching = Thread(target=_watch, args=(process.pid, peak, done))
        watching.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            done.set()
            watching.join()
    seconds = time.monotonic() - began
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in done_codes:
        raise subprocess.CalledProcessError(code, argv, stderr=(folder / "errors").read_text()[-3000:])
    return Cost(seconds, usage.ru_utime + usage.ru_stime, peak[0])


def _watch(root: int, peak: list[float], done: Event) -> None:
    while not done.wait(0.2):
        peak[0] = max(peak[0], _resident(root) / 1e6)


def _resident(process: int, parent: tuple[bytes, str] = (b"", "")) -> int:
    """Return the private memory of a process and its children that is in RAM, in bytes.

    A child with the command line and the size of its parent was just forked. Its memory is still that of its parent, so
    it is not counted again.
    """
    with suppress(OSError, IndexError):
        where = Path(f"/proc/{process}")
        size, resident, shared, *_ = (where / "statm").read_text().split()
        program = (where / "cmdline").read_bytes(), size
        own = 0 if program == parent else (int(resident) - int(shared)) * _PAGE
        return own + sum(_resident(child, program) for child in _children(where))
    return 0


def _children(process: Path) -> Iterator[int]:
    for children in (process / "task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, children.read_text().split())


def load(server: Server, tables: str, folder: Path) -> Cost:
    """Load the tables that match a pattern with this loader, into an empty warehouse."""
    file = write_config(folder, server, tables=tables, master=f"local[{_READERS}]", files=False)
    return run([sys.executable, "-m", "loader", "--config", str(file), "--json", "initial-load"], folder)


def stage(server: Server, table: str, folder: Path) -> Cost:
    """Stage a table, as the task `read_tables` of the DAG does on one machine: in a process without Spark."""
    file = write_config(folder, server, tables=table, files=False)
    return run([sys.executable, "-c", _STAGE], folder, {"LOADER_CONFIG": str(file)})


def copy_with_jdbc(server: Server, table: str, rows: int, folder: Path) -> Cost:
    """Copy a table with `spark.read.jdbc`, with as many partitions as the loader has readers."""
    settings = SparkSettings(master=f"local[{_READERS}]", jars=jars())
    conf = configuration(settings)
    driver = next(jars_folder(_HERE / "jdbc.lock").glob("*.jar"))
    conf["spark.driver.extraClassPath"] += f":{driver}"
    url = f"jdbc:mysql://{server.host}:{server.port}/bench?useCursorFetch=true&sslMode=DISABLED"
    arguments = [url, server.user, f"bench.{table}", SHAPES[table].partition, "0", str(rows), str(_READERS)]
    home = Path(environment(settings)["SPARK_HOME"])
    argv = [str(home / "bin" / "spark-submit"), "--master", settings.master]
    for name, value in conf.items():
        argv += ["--conf", f"{name}={value}"]
    argv += [str(_HERE / "plain_jdbc.py"), *arguments, str(_FETCH_ROWS), str(folder / "jdbc")]
    return run(argv, folder, environment(settings))


def dump(server: Server, table: str, folder: Path) -> Cost:
    """Dump a table with mysqldump, without its definition."""
    tool = fetch("mysql").tool("mysqldump")
    where = ["--host", server.host, "--port", str(server.port), "--user", server.user, "--protocol=tcp"]
    return run([*tool, *where, "--no-create-info", "--set-gtid-purged=OFF", "bench", table], folder)


def dump_in_threads(server: Server, table: str, folder: Path) -> Cost:
    """Dump a table with mydumper, without its definition, with as many threads as the loader has readers."""
    tool = program("mydumper", "mydumper")
    (plugins,) = (Path(tool[-1]).parents[1] / "lib").glob("*/libmariadb3/plugin")
    where = ["--host", server.host, "--port", str(server.port), "--user", server.user, "--database", "bench"]
    what = ["--tables-list", table, "--no-schemas", "--rows", str(_DUMPED_ROWS), "--threads", str(_READERS)]
    argv = [*tool, *where, *what, "--outputdir", str(folder / "mydumper")]
    return run(argv, folder, {"MARIADB_PLUGIN_DIR": str(plugins)})


def measure_table(server: Server, table: str, rows: int, pairs: int) -> dict[str, Any]:
    """Return the figures of a table."""
    fill(server, table, SHAPES[table], rows)
    measured = [_measure_pair(server, table, rows) for _ in range(pairs)]
    with connected(server) as cursor:
        cursor.execute(f"DROP TABLE bench.{table}")
    ours, jdbc = [pair["ours"] for pair in measured], [pair["jdbc"] for pair in measured]
    return {
        "table": f"{table}, {rows:,} rows",
        "ratio to spark.read.jdbc": _ratio(measured, "ours", "jdbc"),
        "ratio of staging to mysqldump": _ratio(measured, "staging", "mysqldump"),
        "ratio of staging to mydumper": _ratio(measured, "staging", "mydumper"),
        "ratio of staging beside Java to mysqldump": _ratio(measured, "staging beside Java", "mysqldump"),
        **{f"seconds of {name}": round(median(pair[name].seconds for pair in measured), 1) for name in measured[0]},
        "CPU seconds": round(median(cost.cpu for cost in ours), 1),
        "CPU seconds of jdbc": round(median(cost.cpu for cost in jdbc), 1),
        "MB": round(max(cost.megabytes for cost in ours)),
        "MB of jdbc": round(max(cost.megabytes for cost in jdbc)),
    }


def _measure_pair(server: Server, table: str, rows: int) -> dict[str, Cost]:
    """Return the costs of this loader, of its staging, and of each peer.

    `staging` is a whole process that only stages. `staging beside Java` is a part of a load, while Spark starts.
    """
    with TemporaryDirectory(prefix="loader-bench-") as name:
        folder = Path(name)
        os.sync()
        costs = {"ours": load(server, table, folder), "staging beside Java": Cost(_staging_seconds(folder), 0, 0)}
        shutil.rmtree(folder / "staging")
        shutil.rmtree(folder / "warehouse")
        costs["staging"] = stage(server, table, folder)
        shutil.rmtree(folder / "staging")
        costs["jdbc"] = copy_with_jdbc(server, table, rows, folder)
        shutil.rmtree(folder / "jdbc")
        costs["mysqldump"] = dump(server, table, folder)
        costs["mydumper"] = dump_in_threads(server, table, folder)
        return costs


def _ratio(measured: Sequence[dict[str, Cost]], one: str, other: str) -> float:
    """Return the median of the ratios of two costs in each pair."""
    return round(median(pair[one].seconds / pair[other].seconds for pair in measured), 2)


def _staging_seconds(folder: Path) -> float:
    """Return the seconds from the position of the table's load, before its chunks are cut, to its manifest."""
    (plan,) = (folder / "staging").rglob("plan.json")
    began = datetime.fromisoformat(json.loads(plan.read_text())["taken_at"]).replace(tzinfo=UTC)
    return plan.with_name("manifest.json").stat().st_mtime - began.timestamp()


def measure_small_tables(server: Server, tables: int) -> dict[str, Any]:
    """Return the figures of many small tables."""
    fill_many(server, tables, _SMALL_ROWS)
    with TemporaryDirectory(prefix="loader-bench-") as name:
        cost = load(server, "small_*", Path(name))
    return {
        "table": f"{tables} tables of {_SMALL_ROWS:,} rows",
        "seconds": round(cost.seconds, 1),
        "seconds per table": round(cost.seconds / tables, 3),
        "MB": round(cost.megabytes),
    }


def measure(tables: Sequence[str], pairs: int, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the figures of each table, then those of many small tables."""
    warm(SparkSettings(master=f"local[{_READERS}]", jars=jars()))  # as an installation does, with `loader warm --jars`
    part = 10 if quick else 1
    with empty_server() as server:
        for table in tables or SHAPES:
            if table in SHAPES:
                yield measure_table(server, table, SHAPES[table].rows // part, pairs)
        if not tables or "small" in tables:
            yield measure_small_tables(server, _SMALL_TABLES // part)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of each table."""
    options = parser(__doc__, "tables of a tenth of the size, and one pair")
    options.add_argument("--pairs", type=int, default=5, help="runs of each program")
    options.add_argument("--table", action="append", default=[], choices=[*SHAPES, "small"], help="only these tables")
    given = options.parse_args(arguments)
    report(measure(given.table, 1 if given.quick else given.pairs, quick=given.quick), given.json)


if __name__ == "__main__":
    sys.exit(main())
