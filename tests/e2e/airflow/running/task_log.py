"""What the log of a task says about its work, in each supported version of Airflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.airflow_version import AIRFLOW

_AFTER = "::group::Post Execute"
_EXITED, _FINAL = "Task exited", "Task failed with exception"


def work_of(entries: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of the work of a task, without the lines that Airflow logs around it.

    The log of a failed task ends with the same line in all versions. Before 3.3, Airflow logs a traceback with the last
    line of a task that is not tried again. No other line may have one.
    """
    lines = [_line(entry) for entry in entries]
    ends = [place for place, line in enumerate(lines) if line == _AFTER]
    if not ends:  # 3.1 has no groups
        ends = [place + 1 for place, line in enumerate(lines) if line == _EXITED] or [len(lines)]
    return [line for line in lines[: ends[-1]] if not line.startswith("::")]


def _line(entry: dict[str, Any]) -> str:
    event, details = str(entry["event"]), entry.get("error_detail")
    if not details:
        return event
    assert AIRFLOW < (3, 3), "there is a traceback in the log"
    assert (event, details[0]["exc_type"]) == (_FINAL, "_FinalTaskFailed")
    return _EXITED
