"""What a load and a delta cost on a cluster of two workers with one core each, beside the same on `local[2]`.

    python -m tests.bench.cluster [--quick] [--pairs N] [--json FILE]

Process starts are left out: the time of the same command over two new tables of one row is subtracted, for which each
core starts its process of Python as well. A ratio is the median over the pairs of one run: the time on the cluster
divided by the time on one machine right before it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from infra.servers import Server
from infra.spark_cluster import SparkCluster, spark_cluster
from loader.spark.settings import SparkSettings
from loader.spark.submit import warm
from tests.bench.configuration import write_config
from tests.bench.figures import parser, report
from tests.bench.initial import run
from tests.bench.logs import copy, empty
from tests.bench.logs import fill as fill_log
from tests.bench.session import jars
from tests.bench.tables import SHAPES, fill

_LOG_ROWS = 4_000_000
_LOCAL = "local[2]"
_IDLE = ("one", "other")


class Seconds(NamedTuple):
    """The seconds of the stages on one machine or on the cluster."""

    load: float
    delta: float


class Source:
    """One configuration of a source: where its jobs run, and its own staging and warehouse.

    Attributes:
        folder: of the configuration, staging and warehouse.
    """

    def __init__(self, folder: Path, server: Server, master: str, environment: dict[str, str]) -> None:
        self.folder, self._environment = folder, environment
        folder.mkdir()
        self._config = write_config(folder, server, master=master, shared=True)

    def seconds(self, *arguments: str) -> float:
        """Return the seconds of a command of the loader, with all process starts."""
        os.sync()  # what was written before is not to be written while we measure
        argv = [sys.executable, "-m", "loader", "--config", str(self._config), "--json", *arguments]
        return run(argv, self.folder, self._environment).seconds

    def load_seconds(self, *tables: str) -> float:
        """Return the seconds of the initial load of tables."""
        return self.seconds("initial-load", *(f"--table=bench.{table}" for table in tables))


def measure(cluster: SparkCluster, rows: int, log_rows: int) -> tuple[Seconds, Seconds, int]:
    """Return the seconds on one machine and on the cluster, and the bytes of the log."""
    shape = SHAPES["mixed"]
    with TemporaryDirectory(prefix="loader-bench-") as folder, empty() as server:
        for table in ("first", *_IDLE):
            fill(server, table, shape, 1)
        fill(server, "mixed", shape, rows)
        sources = (
            Source(Path(folder, "one"), server, _LOCAL, {}),
            Source(Path(folder, "cluster"), server, cluster.master, cluster.environment),
        )
        # The first load and the first delta of a source also compile kernels and make folders.
        for source in sources:
            source.load_seconds("first")
        idle_loads = [source.load_seconds(*_IDLE) for source in sources]
        loads = [source.load_seconds("mixed") for source in sources]
        fill_log(server, "small", 1)
        for source in sources:
            source.seconds("run")
        copy(server, _IDLE)
        idle_deltas = [source.seconds("run") for source in sources]
        log = fill_log(server, "bulk", log_rows)
        deltas = [source.seconds("run") for source in sources]
        found = [
            Seconds(load - idle_load, delta - idle_delta)
            for load, idle_load, delta, idle_delta in zip(loads, idle_loads, deltas, idle_deltas, strict=True)
        ]
        return found[0], found[1], log.file.stat().st_size


def measure_pairs(pairs: int, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the figures of loads and of deltas."""
    part = 10 if quick else 1
    rows = SHAPES["mixed"].rows // part
    warm(SparkSettings(master=_LOCAL, jars=jars()))  # as an installation does, with `loader warm --jars`
    with TemporaryDirectory(prefix="loader-bench-") as folder, spark_cluster(Path(folder), 2) as cluster:
        found = [measure(cluster, rows, _LOG_ROWS // part) for _ in range(pairs)]
    work = {"load": f"{rows:,} rows", "delta": f"{found[0][2] >> 20} MB of log"}
    for stage in Seconds._fields:
        ones, others = ([getattr(pair[place], stage) for pair in found] for place in (0, 1))
        yield {
            "stage": f"{stage}, {work[stage]}",
            "ratio": round(median(other / one for one, other in zip(ones, others, strict=True)), 2),
            "seconds on the cluster": round(median(others), 1),
            f"on {_LOCAL}": round(median(ones), 1),
        }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of each stage."""
    options = parser(__doc__, "a tenth of the rows and of the log, and one pair")
    options.add_argument("--pairs", type=int, default=3, help="runs on each side")
    given = options.parse_args(arguments)
    report(measure_pairs(1 if given.quick else given.pairs, quick=given.quick), given.json)


if __name__ == "__main__":
    sys.exit(main())
