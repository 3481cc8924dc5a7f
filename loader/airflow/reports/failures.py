"""Results of jobs for people: a small table for the task's log, and the errors of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from textwrap import indent
from typing import Any

from loader.errors import DataError, LoaderError, RetryableError, UnexpectedError
from loader.spark.job import rebuild
from loader.visible_text import visible

_COLUMNS = (
    *("table", "status", "rows", "inserts", "updates", "deletes", "position"),
    *("compacted", "manifests", "expired", "orphans", "branches"),
)
_IDLE = {"already", "unchanged", "same"}


def summary(result: Mapping[str, Any]) -> list[str]:
    """Return lines: status and positions, a line per changed or failed table, and the number of other tables."""
    head = [f"{name} {result[name]}" for name in ("status", "start", "stop", "published") if result.get(name)]
    idle = Counter(table["status"] for table in result.get("tables", []) if table.get("status") in _IDLE)
    tables = [table for table in result.get("tables", []) if table.get("status") not in _IDLE]
    columns = [name for name in _COLUMNS if any(name in table for table in tables)]
    rows = [columns, *([str(table.get(name, "")) for name in columns] for table in tables)] if tables else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    left_out = [
        f"{one['table']} is incomplete from {one['position']} on: {one['why']}" for one in result.get("left_out", [])
    ]
    postponed = [f"{table['table']}: {table['note']}" for table in tables if table.get("note")]
    counts = [f"{count} tables {status}" for status, count in sorted(idle.items())]
    said = [
        ", ".join(head) or "done",
        *(line.rstrip() for line in lines),
        *postponed,
        *counts,
        *left_out,
        *_unstaged(result),
    ]
    return [visible(line) for text in said for line in text.splitlines()]


def _unstaged(result: Mapping[str, Any]) -> list[str]:
    """Return why the interval after the extracted ones is not staged; empty if it was not attempted."""
    if not result.get("failed"):
        return []
    return [
        f"the interval at {result['stop']} is not staged, and the next run starts with it: {rebuild(result['failed'])}"
    ]


def errors_of(result: dict[str, Any]) -> dict[str, LoaderError]:
    """Return the errors of a result, by table."""
    return {table["table"]: rebuild(table["error"]) for table in result.get("tables", []) if table.get("error")}


def failure(errors: Mapping[str, LoaderError], count: int) -> LoaderError | None:
    """Return the error of a task in which some of `count` tables failed; None without errors.

    The error is retryable if a retry helps one of the tables. Tables that are up to date cost a retry nothing. Its
    cause is the error of the first table, so that links lead to the page of that error.
    """
    if not errors:
        return None
    kind: type[LoaderError] = DataError
    if any(error.retryable for error in errors.values()):
        kind = RetryableError
    elif any(isinstance(error, UnexpectedError) for error in errors.values()):
        kind = UnexpectedError
    found = kind(
        f"{len(errors)} of {count} tables failed",
        why="\n".join(f"{table}: {indent(str(error), '  ').lstrip()}" for table, error in errors.items()),
        hint="fix the cause of each error, then clear this task; the other tables are up to date, and runs continue"
        " with them",
        tables=", ".join(errors),
    )
    found.__cause__ = next(iter(errors.values()))
    return found
