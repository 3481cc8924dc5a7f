"""What the command shows while a job runs."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from loader.cli import jobs, progress
from loader.cli.output import Lines, Output
from loader.pipeline.job_kinds import KINDS
from loader.spark.progress import Progress, TableCount, parse_progress
from loader.spark.settings import SparkSettings

_LOADER = "INFO loader.initial_load.run:"
_PROGRESS = "INFO loader.spark.progress:"
Timed = Sequence[tuple[float, str]]


class _Job:
    name, kind, file, spec = "read_tables", KINDS["read_tables"], Path("job.py"), None


class _Source:
    name, spark = "shop", SparkSettings(jars="j")


Submit = Callable[[Output, Timed], None]


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> Submit:
    """A function that submits a job which logs these lines at these seconds."""

    def submit(output: Output, lines: Timed) -> None:
        now = [0.0]

        def run(*_: object, **__: object) -> dict[str, object]:
            for seconds, line in lines:
                now[0] = seconds
                if line.startswith("WARNING here: "):
                    logging.getLogger("loader.pipeline").warning("%s", line.removeprefix("WARNING here: "))
                logging.getLogger("loader.spark.submit").debug("%s", line)
            return {"tables": []}

        monkeypatch.setattr(jobs, "run", run)
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        assert jobs.submit(_Job, _Source, output) == {"tables": []}  # type: ignore[arg-type]
        assert logging.getLogger("loader.spark.submit").handlers == []

    return submit


def test_a_pipe_gets_a_line_every_ten_seconds(submitted: Submit, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        (1, f"{_LOADER} 6 tables to load"),
        (2, f"{_PROGRESS} {Progress('shop.orders', 10, 40, 'chunks', 1000, 500_000)}"),
        (11, "26/11/22 WARN Utils: something of Spark"),
        (12, f"{_PROGRESS} {Progress('shop.orders', 20, 40, 'chunks', 2000, 1_000_000)}"),
        (13, f"{_PROGRESS} {Progress('shop.orders', 21, 40, 'chunks', 2100, 1_050_000)}"),
        (25, f"{_LOADER} table shop.orders: staged, exact at binlog.000001:4"),
    ]
    submitted(Output(as_json=False), lines)
    assert capsys.readouterr().err.splitlines() == [
        "read_tables shop: shop.orders: 20 of 40 chunks, 2,000 rows, 1.0 MB, 100 rows/s, 0:00:20 left",
        "read_tables shop: table shop.orders: staged, exact at binlog.000001:4",
    ]


def test_json_has_events_of_each_table(submitted: Submit, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        (0, f"{_LOADER} 6 tables to load"),
        (1, f"{_PROGRESS} {Progress('shop.orders', 0, 40, 'chunks')}"),
        (2, f"{_PROGRESS} {Progress('shop.orders', 5, 40, 'chunks', 500, 250_000)}"),
        (11, f"{_PROGRESS} {Progress('shop.orders', 10, 40, 'chunks', 1000, 500_000)}"),
        (12, f"{_PROGRESS} {Progress('shop.orders', 40, 40, 'chunks', 4000, 2_000_000)}"),
        (13, f"{_PROGRESS} {Progress('all tables', 1, 6, 'tables', 4000)}"),
    ]
    submitted(Output(as_json=True), lines)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(event["table"], event["done"], event["rows_per_second"], event["seconds_left"]) for event in events] == [
        ("shop.orders", 0, None, None), ("shop.orders", 10, 100, 30), ("shop.orders", 40, 364, None),
        (None, 1, None, None),
    ]  # fmt: skip
    assert events[1] == {
        "event": "progress", "job": "read_tables shop", "table": "shop.orders", "done": 10, "total": 40,
        "unit": "chunks", "rows": 1000, "bytes": 500_000, "rows_per_second": 100, "seconds_left": 30,
    }  # fmt: skip


def test_log_lines_appear_above_the_bars_of_a_terminal(submitted: Submit) -> None:
    output, screen = Output(as_json=False), io.StringIO()
    output.errors = Console(file=screen, force_terminal=True, width=140, soft_wrap=True)
    handler = Lines(output)
    logging.getLogger("loader.pipeline").addHandler(handler)
    lines = [
        (0, f"{_PROGRESS} {Progress('all tables', 0, 2, 'tables')}"),
        (0, f"{_PROGRESS} {Progress('shop.orders', 0, 40, 'chunks')}"),
        (10, f"{_PROGRESS} {Progress('shop.orders', 10, 40, 'chunks', 1000, 500_000)}"),
        (11, "WARNING here: the server is slow"),
        (12, f"{_PROGRESS} {Progress('shop.[b]items[/b]', 3, 3, 'chunks', 7, 100)}"),
        (12, f"{_PROGRESS} {Progress('all tables', 1, 2, 'tables', 7)}"),
    ]
    try:
        submitted(output, lines)
    finally:
        logging.getLogger("loader.pipeline").removeHandler(handler)
    frames = _frames(screen.getvalue())
    shown = [[re.sub(r"[━╸╺⠀-⣿]|\d+:\d\d:\d\d(?! left)", "", line).split() for line in frame] for frame in frames]
    job = ["read_tables", "shop", "1", "of", "2", "tables,", "7", "rows,", "1", "rows/s,", "0:00:12", "left"]
    table = [
        "shop.orders",
        "10",
        "of",
        "40",
        "chunks,",
        "1,000",
        "rows,",
        "0.5",
        "MB,",
        "100",
        "rows/s,",
        "0:00:30",
        "left",
    ]
    assert shown[-2] == [["the", "server", "is", "slow"], job, table]
    assert shown[-1] == [["the", "server", "is", "slow"]]


def _frames(written: str) -> list[list[str]]:
    """Return what a terminal shows before each redraw, and at the end."""
    screen: list[str] = [""]
    frames: list[list[str]] = []
    row = 0
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|\x1b\[[\d;?]*[a-z]|\r|\n|[^\x1b\r\n]+", written):
        if part == "\n":
            row += 1
            screen += [""] * (row + 1 - len(screen))
        elif part == "\r":
            frames.append([line for line in screen if line.strip()])
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            screen[row] = ""
        elif not part.startswith("\x1b"):
            screen[row] += part
    return [*frames, [line for line in screen if line.strip()]]


@pytest.mark.parametrize("name", ["shop.orders", "shop.a: 1 of 2 chunks, 3 rows, 4 bytes", "größe.x y"])
def test_a_log_line_of_progress_is_read_back(name: str) -> None:
    made = Progress(name, 3, 9, "chunks", 12, 345)
    assert parse_progress(str(made)) == made
    assert parse_progress(f"table {name} is staged") is None


def test_each_table_that_is_done_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "loader.spark.progress"):
        count = TableCount(2)
        count.add(rows=5, size=70)
        with pytest.raises(ValueError, match="no"), count.working("shop.items"):
            raise ValueError("no")
    assert caplog.messages == [
        "all tables: 0 of 2 tables, 0 rows, 0 bytes",
        "all tables: 1 of 2 tables, 5 rows, 70 bytes",
        "shop.items: 0 of 0 files, 0 rows, 0 bytes",
        "shop.items: 1 of 1 files, 0 rows, 0 bytes",
        "all tables: 2 of 2 tables, 5 rows, 70 bytes",
    ]


def test_the_work_on_a_table_is_reported_with_its_rows(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "loader.spark.progress"), TableCount(1).working("shop.orders", 3) as done:
        done.rows, done.bytes = 12, 345
    assert caplog.messages[1:] == [
        "shop.orders: 0 of 3 files, 0 rows, 0 bytes",
        "shop.orders: 3 of 3 files, 12 rows, 345 bytes",
        "all tables: 1 of 1 tables, 12 rows, 345 bytes",
    ]
