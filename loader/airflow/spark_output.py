"""Where the output of spark-submit goes: all of it to a file; what the loader says in it also to the task's log."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.sdk._shared.secrets_masker import redact

_OURS = re.compile(r"(INFO|WARNING|ERROR) loader\.[\w.]+: (.*)")
"""A line that `loader.spark.job` has set up: any other logger of the job writes to the file alone."""
_FRAME = re.compile(r"\s*(at |\.\.\. \d+ more|File \"|Traceback )")
_LAST_LINES = 5


class _Ours(logging.Handler):
    """Passes what the loader itself says on to another logger."""

    def __init__(self, log: Any) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if found := _OURS.match(record.getMessage()):
            self._log.log(logging.getLevelNamesMapping()[found[1]], found[2])


class _Redacted(logging.Formatter):
    """Hides the secrets that Airflow hides in its own logs."""

    def format(self, record: logging.LogRecord) -> str:
        return str(redact(super().format(record)))


@contextmanager
def output_log(file: Path, log: Any) -> Iterator[logging.Logger]:
    """A logger that writes to a file, and passes the loader's own lines on to `log`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    to_file = logging.FileHandler(file, encoding="utf-8")
    to_file.setFormatter(_Redacted("%(message)s"))
    output = logging.Logger("spark-submit", logging.INFO)  # of no parent, so that nobody else writes its lines
    output.addHandler(to_file)
    output.addHandler(_Ours(log))
    try:
        yield output
    finally:
        to_file.close()


def last_lines(file: Path) -> str:
    """The end of the output, without the frames of tracebacks."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        told = (line.rstrip() for line in lines if line.strip() and not _FRAME.match(line))
        return "\n".join(deque(told, _LAST_LINES))
