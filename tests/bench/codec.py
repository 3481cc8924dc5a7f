"""How fast a log file becomes staged CSV or a listing, as ratios to other programs that read the same file in the same call.

    python -m tests.bench.codec [--quick] [--pairs N] [--json FILE]

Whole processes, one thread each, in pairs one after the other: a noisy machine slows both. The seconds say little
about another machine, the ratios much.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from tests.bench.figures import parser, report
from tests.bench.logs import Log, bulk, live, narrow, repeated, small
from tests.bench.peers import Program, connector_java, listing, loader, mysqlbinlog, python_mysql_replication

_FILES = 4  # of each log for two threads
_BULK, _SMALL = 5_500_000, 2_000_000  # 11 M row images in 1 GB; 2 M transactions
_NARROW = 139_027  # rows in 3 MB: the start of a process is most of their listing


def compared(log: Log, ours: Program, other: Program, pairs: int) -> dict[str, Any]:
    """Both over the log, in turn: how many times as fast we are, and what each needed."""
    runs = [(ours.run(log.file), other.run(log.file)) for _ in range(pairs)]
    for cost in (cost for pair in runs for cost in pair):
        if cost.changes not in (None, log.changes):
            raise SystemExit(f"{log.file.name} has {log.changes} changes, not {cost.changes}")
    ratios = sorted(theirs.seconds / mine.seconds for mine, theirs in runs)
    return {
        "log": log.file.name,
        "of": ours.name,
        "to": other.name,
        "ratio": round(statistics.median(ratios), 2),
        "from": round(ratios[0], 2),
        "until": round(ratios[-1], 2),
        "changes per second": round(log.changes / statistics.median(mine.seconds for mine, _ in runs)),
        "and of the other": round(log.changes / statistics.median(theirs.seconds for _, theirs in runs)),
        "MB": round(max(mine.megabytes for mine, _ in runs)),
        "MB of the other": round(max(theirs.megabytes for _, theirs in runs)),
    }


def walked(log: Log) -> dict[str, Any]:
    """Megabytes of log per second of the walk with its checksums, best of 3; not the start of its process."""
    argv = [sys.executable, str(Path(__file__).with_name("walk.py")), str(log.file)]
    return {"log": log.file.name, "walk with checksums, MB/s": int(subprocess.check_output(argv))}


def first_row(log: Log) -> dict[str, Any]:
    """Seconds from the start of a process to the staged rows of a tiny log; median of 5."""
    seconds = [loader().run(log.file).seconds for _ in range(5)]
    return {"log": log.file.name, "seconds to the first row": round(statistics.median(seconds), 2)}


def to_python(log: Log, kind: Literal["bulk", "small"]) -> dict[str, Any]:
    """Our changes per second over a log to those of python-mysql-replication over a small one of the same kind."""
    with live(kind, 40_000) as (server, part):
        other = python_mysql_replication(server)
        theirs = part.changes / other.run(part.file).seconds
    ours = log.changes / loader().run(log.file).seconds
    return {
        "log": log.file.name,
        "to": f"{other.name}, on {part.changes} changes",
        "ratio": round(ours / theirs, 1),
        "changes per second": round(ours),
        "and of the other": round(theirs),
    }


def listed(log: Log, pairs: int) -> Iterator[dict[str, Any]]:
    """The listings of a log, each beside `mysqlbinlog -v`, which prints the same values."""
    yield compared(log, listing("text"), mysqlbinlog(), pairs)
    yield compared(log, listing("json"), mysqlbinlog(), pairs)


def measured(quick: bool, pairs: int) -> Iterator[dict[str, Any]]:
    """All figures, as they come."""
    share = 10 if quick else 1
    yield first_row(bulk(1000))
    yield from listed(narrow(_NARROW), pairs)
    for log in (bulk(_BULK // share), small(_SMALL // share)):
        yield walked(log)
        yield from listed(log, pairs)
        for other in (mysqlbinlog(), connector_java()):
            if other is None:
                yield {"log": log.file.name, "to": "connector-java", "ratio": "not measured: no javac"}
            else:
                yield compared(log, loader(), other, pairs)
        with repeated(log, _FILES) as files:  # what two threads gain shows where the start of a process is little of it
            yield {**compared(files, loader(2), loader(), pairs), "log": f"{_FILES} times {log.file.name}"}
    for kind, log in (("bulk", bulk(_BULK // share)), ("small", small(_SMALL // share))):
        yield to_python(log, kind)


def main() -> None:
    """Print each figure as it comes."""
    options = parser(__doc__, "logs of a tenth of the size")
    options.add_argument("--pairs", type=int, default=5)
    given = options.parse_args()
    report(measured(given.quick, given.pairs), given.json)


if __name__ == "__main__":
    sys.exit(main())
