"""Results of jobs, for people: a small table for the task's log, and what failed in them."""

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


def summary(result: dict[str, Any]) -> list[str]:
    """Lines: status and positions, one per table that the job changed or failed on, how many it left as they were."""
    head = [f"{name} {result[name]}" for name in ("status", "start", "stop", "published") if result.get(name)]
    idle = Counter(table["status"] for table in result.get("tables", []) if table.get("status") in _IDLE)
    tables = [table for table in result.get("tables", []) if table.get("status") not in _IDLE]
    columns = [name for name in _COLUMNS if any(name in table for table in tables)]
    rows = [columns, *([str(table.get(name, "")) for name in columns] for table in tables)] if tables else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    left_out = [
        f"{one['table']} is left out from {one['position']} on: {one['why']}" for one in result.get("left_out", [])
    ]
    counts = [f"{count} tables {status}" for status, count in sorted(idle.items())]
    said = [", ".join(head) or "done", *(line.rstrip() for line in lines), *counts, *left_out, *_unstaged(result)]
    return [visible(line) for text in said for line in text.splitlines()]


def _unstaged(result: dict[str, Any]) -> list[str]:
    """Why the interval after the extracted ones is not staged, where it is not."""
    if not result.get("failed"):
        return []
    return [
        f"the interval at {result['stop']} is not staged, and the next run begins with it: {rebuild(result['failed'])}"
    ]


def errors_of(result: dict[str, Any]) -> dict[str, LoaderError]:
    """The errors of a result, by table."""
    return {table["table"]: rebuild(table["error"]) for table in result.get("tables", []) if table.get("error")}


def failure(errors: Mapping[str, LoaderError], count: int) -> LoaderError | None:
    """The error of a task in which these of `count` tables failed; None when none did.

    It can be retried when that helps one of the tables: those that are up to date cost a retry nothing.
    """
    if not errors:
        return None
    kind: type[LoaderError] = DataError
    if any(error.retryable for error in errors.values()):
        kind = RetryableError
    elif any(isinstance(error, UnexpectedError) for error in errors.values()):
        kind = UnexpectedError
    return kind(
        f"{len(errors)} of {count} tables failed",
        why="\n".join(f"{table}: {indent(str(error), '  ').lstrip()}" for table, error in errors.items()),
        hint="do what each table's error says, then clear this task; the other tables are up to date, and runs go on"
        " with them",
        tables=", ".join(errors),
    )
