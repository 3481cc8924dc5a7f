"""What a task's log has of the output of spark-submit, and of the progress of its job."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from infra.servers import Server
from loader import pipeline
from loader.airflow.reports.progress_lines import ProgressLines, fewer_progress_lines
from loader.airflow.reports.spark_output import last_lines, output_log
from loader.spark.progress import Progress
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.pipeline.conftest import settings_of

_TASK = logging.getLogger("airflow.task.of-a-test")
_OUTPUT = """\
26/11/22 10:00:00 WARN Utils: something of Spark
INFO loader.initial_load.run: 6 tables to load
INFO loader.spark.progress: shop.orders: 10 of 40 chunks, 1000 rows, 500000 bytes
WARNING loader.initial_load.run: table shop.orders was altered
ERROR loader.spark.job: the job failed
Traceback (most recent call last):
  File "job.py", line 1
py4j.protocol.Py4JJavaError: no space left\x1b[0m

\tat org.apache.spark.Executor.run(Executor.java:1)
\t... 12 more
26/11/22 10:00:01 INFO ShutdownHookManager: bye
"""


def test_the_file_has_all_lines_and_the_log_those_of_the_loader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "details" / "try-1.log"
    with caplog.at_level(logging.INFO, _TASK.name), output_log(file, _TASK) as output:
        for line in _OUTPUT.splitlines():
            output.info(line)
    assert [(one.levelname, one.getMessage()) for one in caplog.records if one.name == _TASK.name] == [
        ("INFO", "6 tables to load"),
        ("WARNING", "table shop.orders was altered"),
        ("ERROR", "the job failed"),
    ]
    assert file.read_text().splitlines() == [
        line.replace("\x1b", "\\x1b").expandtabs() for line in _OUTPUT.splitlines()
    ]
    assert last_lines(file).splitlines() == [
        "INFO loader.spark.progress: shop.orders: 10 of 40 chunks, 1000 rows, 500000 bytes",
        "WARNING loader.initial_load.run: table shop.orders was altered",
        "ERROR loader.spark.job: the job failed",
        "py4j.protocol.Py4JJavaError: no space left\\x1b[0m",
        "26/11/22 10:00:01 INFO ShutdownHookManager: bye",
    ]


def progress(seconds: int) -> list[str]:
    """Return the progress lines of a job at a number of seconds after its start: of a large and a small table, and of all."""
    large = Progress("shop.large", min(seconds, 130), 130, "chunks", seconds * 100, seconds * 10_000)
    small = [Progress("shop.small", int(seconds > 2), 1, "chunks", 7, 70)] if seconds < 5 else []
    return [str(one) for one in (large, *small, Progress("all tables", int(seconds >= 130), 2, "tables"))]


def test_the_log_has_a_line_per_minute_of_each_large_table() -> None:
    now = [0.0]
    lines = ProgressLines(lambda: now[0])
    shown = []
    for seconds in (*range(0, 130, 2), 130, 130):
        now[0] = float(seconds)
        shown += [(seconds, line) for line in map(lines.line, progress(seconds)) if line]
    assert shown == [
        (60, "shop.large: 60 of 130 chunks, 6,000 rows, 0.6 MB, 100 rows/s, 0:01:10 left"),
        (60, "all tables: 0 of 2 tables, 0 rows"),
        (120, "shop.large: 120 of 130 chunks, 12,000 rows, 1.2 MB, 100 rows/s, 0:00:10 left"),
        (120, "all tables: 0 of 2 tables, 0 rows"),
        (130, "shop.large: 130 of 130 chunks, 13,000 rows, 1.3 MB, 100 rows/s"),
    ]


def test_a_job_in_the_process_of_the_task_logs_as_few_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("loader.airflow.reports.progress_lines._SECONDS", 0)
    large = Progress("shop.large", 1, 2, "chunks", 100, 1000)
    with caplog.at_level(logging.INFO):
        with fewer_progress_lines():
            large.report()
        monkeypatch.undo()
        with fewer_progress_lines():
            large.report()
        large.report()
    assert caplog.messages == ["shop.large: 1 of 2 chunks, 100 rows, 0.0 MB", str(large)]


@pytest.mark.integration
def test_a_load_in_the_process_of_the_task_logs_the_progress_of_its_tables(
    mysql_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = SourceServer(mysql_server)
    try:
        source.run("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1), (2), (3), (4), (5)")
        settings = settings_of(source.address, f"{source.schema}.*", tmp_path).model_copy(update={"chunk_rows": 2})
        monkeypatch.setattr("loader.airflow.reports.progress_lines._SECONDS", 0)
        with caplog.at_level(logging.INFO), fewer_progress_lines():
            pipeline.run_in_threads(pipeline.read_tables_job(settings), 2)
    finally:
        source.drop()
    progress = [
        re.sub(r"[\d,]+ rows/s", "N rows/s", line)
        for line in caplog.messages
        if line.startswith(f"{source.schema}.orders: ")
    ]
    assert progress == [
        f"{source.schema}.orders: 0 of 3 chunks, 0 rows",
        f"{source.schema}.orders: 3 of 3 chunks, 5 rows, 0.0 MB, N rows/s",
    ]
    assert [line for line in caplog.messages if "chunk 1" in line] == []
