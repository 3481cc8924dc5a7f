"""What a whole delta costs beside printing the same log: position, extraction and merge, every process start included.

    python -m tests.bench.e2e [--quick] [--json FILE]

The ratio is to `mysqlbinlog -v` over the same file in the same call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from loader.spark.settings import SparkSettings
from loader.spark.submit import warm
from tests.bench.configuration import write_config
from tests.bench.figures import parser, report
from tests.bench.logs import empty, fill
from tests.bench.peers import Program, mysqlbinlog
from tests.bench.session import jars

Kind = Literal["bulk", "small"]
_CASES: tuple[tuple[Kind, int], ...] = (("bulk", 500_000), ("bulk", 5_000_000), ("small", 200_000))


def loader(config: Path, *arguments: str) -> Program:
    """The command, whole."""
    argv = [sys.executable, "-m", "loader", "--config", str(config), "--json", *arguments]
    return Program("loader", lambda _file, _folder: argv)


def measured(quick: bool) -> Iterator[dict[str, Any]]:
    """A figure for each log."""
    warm(SparkSettings(master="local[2]", jars=jars()))  # as an installation does, with `loader warm --jars`
    with TemporaryDirectory(prefix="loader-bench-") as folder, empty() as server:
        config = write_config(Path(folder), server)
        loader(config, "initial-load").run(config)
        for kind, size in _CASES:
            log = fill(server, kind, size // 10 if quick else size)
            os.sync()  # what the server wrote is not to be written while we measure
            ours, theirs = loader(config, "run").run(log.file), mysqlbinlog().run(log.file)
            yield {
                "log": f"{kind}, {log.changes:,} changes, {log.file.stat().st_size >> 20} MB",
                "ratio": round(ours.seconds / theirs.seconds, 2),
                "seconds": round(ours.seconds, 1),
                "of mysqlbinlog -v": round(theirs.seconds, 1),
                "MB of the largest process": round(ours.megabytes),
            }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each figure as it comes."""
    given = parser(__doc__, "logs of a tenth of the size").parse_args(arguments)
    report(measured(given.quick), given.json)


if __name__ == "__main__":
    sys.exit(main())
