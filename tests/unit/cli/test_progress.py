"""What the command says while a job runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from loader.cli import jobs
from loader.cli.output import Output
from loader.spark.submit import SparkSettings

_LINES = [
    (1, "INFO loader.initial_load.run: 6 tables to load"),
    (11, "26/11/22 WARN Utils: something of Spark"),
    (12, "INFO loader.initial_load.run: table shop.orders: 5000 rows read"),
    (13, "INFO loader.initial_load.run: table shop.orders: 6000 rows read"),
    (25, "INFO loader.initial_load.run: table shop.orders: 9000 rows read"),
]


def test_a_pipe_gets_a_line_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]

    def run(*_: object, **__: object) -> dict[str, object]:
        for seconds, line in _LINES:
            now[0] = seconds
            logging.getLogger("loader.spark.submit").debug("%s", line)
        return {"tables": []}

    class Told:
        name, short, file, spec = "read_tables", False, Path("job.py"), None

    class Source:
        name, spark = "shop", SparkSettings(jars="j")

    monkeypatch.setattr(jobs, "run", run)
    monkeypatch.setattr(jobs.time, "monotonic", lambda: now[0])
    assert jobs.submit(Told, Source, Output(as_json=False).console) == {"tables": []}  # type: ignore[arg-type]
    assert capsys.readouterr().err.splitlines() == [
        "read_tables shop: table shop.orders: 5000 rows read",
        "read_tables shop: table shop.orders: 9000 rows read",
    ]
    assert logging.getLogger("loader.spark.submit").handlers == []
