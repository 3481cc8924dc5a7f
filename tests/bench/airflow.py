"""What a run of `SOURCE.delta` costs in a real Airflow beside `loader run` over the same log.

    python -m tests.bench.airflow [--quick] [--pairs N] [--json FILE]

Two loaders with a staging area and a warehouse each follow the same server. Each pair is one run of the DAG, from its
trigger to its success, and then one `loader run`. Ratios are medians over the pairs of one call. A task is split into
`queue` (scheduled until started), `start` (Airflow's own start), `imports` (the parsing of the DAG file, with what it
imports), `spark` (of tasks with Spark: until Java and Spark have started; the log is read meanwhile), `work`, and `end`.
`limit` is 1.5 times `loader run`, and 2 seconds per task for Airflow itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from infra.servers import Server, start_server
from loader.cli.demo.shop import create_shop
from loader.spark.job import STARTED
from loader.spark.settings import SparkSettings
from loader.spark.submit import warm
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.bench.figures import parser, report
from tests.bench.session import jars
from tests.e2e.airflow.running.server import DELTA, LOAD, Airflow, running
from tests.e2e.loaded import Loaded

_ROWS = 20_000
_CHANGES = (
    "UPDATE shop.customers SET balance = balance + 1",
    "UPDATE shop.order_items SET quantity = quantity + 1 WHERE order_id % 4 = {n} % 4",
    "UPDATE shop.inventory SET on_hand = {n}",
    "UPDATE shop.products SET title = 'title {n}'",
    "UPDATE shop.orders SET status = status",
    "DELETE FROM shop.reviews WHERE customer_id % 20 = {n} % 20",
)


def prepared(server: Server, home: Path) -> Loaded:
    """Return a configuration in its own folder, without the settings that the tests use for Spark."""
    found = Loaded(server, home, jars())
    found.configure()
    text = found.config.read_text().replace("part_bytes = 65536\nchunk_rows = 500\n", "")
    found.config.write_text(f'{text}airflow.schedule.delta = ""\n')  # only the measured runs
    return found


@contextmanager
def sides(folder: Path) -> Iterator[tuple[Airflow, Loaded]]:
    """A shop that is loaded twice: by an Airflow, and by commands."""
    with start_server("mysql", folder / "server") as server:
        address = ServerAddress(host=server.host, port=server.port, user="root")
        create_shop(address, _ROWS)
        ours, theirs = prepared(server, folder / "dags"), prepared(server, folder / "commands")
        ours.create_user()
        theirs.json("initial-load")
        airflow = Airflow(folder / "airflow", ours.config)
        airflow.env["AIRFLOW__CORE__PARALLELISM"] = "4"
        airflow.prepare()
        with running(airflow):
            airflow.unpause(LOAD)
            airflow.wait_for(LOAD, airflow.trigger(LOAD), "success")
            airflow.unpause(DELTA)
            yield airflow, theirs


def run_of(airflow: Airflow) -> tuple[float, dict[str, dict[str, float]]]:
    """Trigger a delta. Return its seconds from the trigger to the end of its last task, and those of each task."""
    began = time.time()
    run = airflow.trigger(DELTA)
    airflow.wait_for(DELTA, run, "success")
    tasks = airflow.tasks(DELTA, run)
    ended = max(_seconds(task["end_date"]) for task in tasks.values() if task["end_date"])
    return ended - began, {name: _parts(airflow, run, name, task) for name, task in tasks.items() if task["duration"]}


def _parts(airflow: Airflow, run: str, name: str, task: dict[str, Any]) -> dict[str, float]:
    texts = ("Filling up the DagBag", "::endgroup::", STARTED, "::group::Post Execute")
    imports, work, started, end = airflow.first_times(DELTA, run, name, *texts)
    moments = [
        ("queue", _seconds(task["scheduled_when"])),
        ("start", _seconds(task["start_date"])),
        ("imports", imports),
        ("spark" if started else "work", work),
        ("work", started),
        ("end", end),
        ("", _seconds(task["end_date"])),
    ]
    known = [(part, at) for part, at in moments if at]
    return {part: until - at for (part, at), (_, until) in pairwise(known)}


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def measured(pairs: int) -> Iterator[dict[str, Any]]:
    """Figures of deltas with changes of six tables, and of a quiet source."""
    warm(SparkSettings(master="local[2]", jars=jars()))  # as an installation does, with `loader warm --jars`
    with TemporaryDirectory(prefix="loader-bench-") as folder, sides(Path(folder)) as (airflow, theirs):
        for name, changes in (("six tables", _CHANGES), ("a quiet source", ())):
            found = [_pair(airflow, theirs, [one.format(n=number) for one in changes]) for number in range(pairs)]
            yield {
                "log": name,
                "ratio": round(median(one / other for one, other, _ in found), 2),
                "seconds": round(median(one for one, _, _ in found), 1),
                "of loader run": round(median(other for _, other, _ in found), 1),
                "limit": round(median(1.5 * other + 2 * len(tasks) for _, other, tasks in found), 1),
                "tasks": _medians([tasks for _, _, tasks in found]),
            }


def _pair(airflow: Airflow, theirs: Loaded, changes: Sequence[str]) -> tuple[float, float, dict[str, dict[str, float]]]:
    with connected(theirs.address) as connection, connection.cursor() as cursor:
        for change in changes:
            cursor.execute(change)
    os.sync()
    seconds, tasks = run_of(airflow)
    began = time.monotonic()
    theirs.json("run")
    return seconds, time.monotonic() - began, tasks


def _medians(runs: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    names = set.intersection(*(set(run) for run in runs))
    return {
        name: {part: round(median(run[name][part] for run in runs), 1) for part in runs[0][name]}
        for name in sorted(names)
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each figure as it comes."""
    options = parser(__doc__, "one pair")
    options.add_argument("--pairs", type=int, default=5)
    given = options.parse_args(arguments)
    report(measured(1 if given.quick else given.pairs), given.json)


if __name__ == "__main__":
    sys.exit(main())
