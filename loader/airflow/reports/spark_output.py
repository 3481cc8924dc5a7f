"""The output of spark-submit: all of it goes to a file, and the log lines of the loader also to the task's log."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.sdk._shared.secrets_masker import redact

from loader.airflow.reports.progress_lines import ProgressLines
from loader.spark.job import HISTORY
from loader.spark.progress import LOGGER
from loader.visible_text import visible_lines

_LOADER_LINE = re.compile(r"(?P<level>INFO|WARNING|ERROR) (?P<logger>loader\.[\w.]+): (?P<text>.*)")
"""A log line of the loader, in the format of `loader.spark.job`."""
_FRAME = re.compile(r"\s*(at |\.\.\. \d+ more|File \"|Traceback )")
_LAST_LINES = 5


class _LoaderLines(logging.Handler):
    """Passes the lines that the loader itself logs on to another logger; of progress, see ProgressLines."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self._log = log
        self._progress = ProgressLines()

    def emit(self, record: logging.LogRecord) -> None:
        line = _LOADER_LINE.match(record.getMessage())
        if not line:
            return
        text = self._progress.line(line["text"]) if line["logger"] == LOGGER else line["text"]
        if text is not None:
            self._log.log(logging.getLevelNamesMapping()[line["level"]], text)


class _Redacted(logging.Formatter):
    """Hides the secrets that Airflow hides in its logs, and writes control characters as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        return visible_lines(str(redact(super().format(record))).expandtabs())  # JVM frames have tabs


@contextmanager
def output_log(file: Path, log: Any) -> Iterator[logging.Logger]:
    """Provide a logger that writes to a file, and passes the loader's own lines on to `log`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    to_file = logging.FileHandler(file, encoding="utf-8")
    to_file.setFormatter(_Redacted("%(message)s"))
    output = logging.Logger("spark-submit", logging.INFO)  # without a parent, so that no other handler gets its lines
    output.addHandler(to_file)
    output.addHandler(_LoaderLines(log))
    try:
        yield output
    finally:
        to_file.close()


def history_page(file: Path) -> str:
    """Return the page of the application on Spark's history server, from the output of its job; empty without one."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        found = (line.rpartition(HISTORY)[2].strip() for line in lines if HISTORY in line)
        return next(found, "")


def last_lines(file: Path) -> str:
    """Return the last lines of the output, without the frames of tracebacks."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        texts = (line.rstrip() for line in lines if line.strip() and not _FRAME.match(line))
        return "\n".join(deque(texts, _LAST_LINES))
