"""Results of jobs, for people: a small table for the task's log, and what failed in them."""

from __future__ import annotations

from typing import Any

from loader.errors import DataError, LoaderError, RetryableError, UnexpectedError
from loader.job import rebuild

_COLUMNS = (
    *("table", "status", "rows", "inserts", "updates", "deletes", "position"),
    *("compacted", "manifests", "expired", "orphans", "branches"),
)


def summary(result: dict[str, Any]) -> list[str]:
    """Lines: status and positions, then one per table with its rows and where it stands."""
    head = [f"{name} {result[name]}" for name in ("status", "start", "stop", "published") if result.get(name)]
    tables = result.get("tables", [])
    columns = [name for name in _COLUMNS if any(name in table for table in tables)]
    rows = [columns, *([str(table.get(name, "")) for name in columns] for table in tables)] if tables else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    left_out = [
        f"{one['table']} is left out from {one['position']} on: {one['why']}" for one in result.get("left_out", [])
    ]
    return [", ".join(head) or "done", *(line.rstrip() for line in lines), *left_out, *_unstaged(result)]


def _unstaged(result: dict[str, Any]) -> list[str]:
    """Why the interval after the extracted ones is not staged, where it is not."""
    if not result.get("failed"):
        return []
    return [
        f"the interval at {result['stop']} is not staged, and the next run begins with it: {rebuild(result['failed'])}"
    ]


def failure(result: dict[str, Any]) -> LoaderError | None:
    """The error of a result in which tables failed; None when none did.

    It can be retried when that helps one of the tables: those that are up to date cost a retry nothing.
    """
    tables = result.get("tables", [])
    errors = {table["table"]: rebuild(table["error"]) for table in tables if table.get("error")}
    if not errors:
        return None
    kind: type[LoaderError] = DataError
    if any(error.retryable for error in errors.values()):
        kind = RetryableError
    elif any(isinstance(error, UnexpectedError) for error in errors.values()):
        kind = UnexpectedError
    return kind(
        f"{len(errors)} of {len(tables)} tables failed",
        why="\n".join(f"{table}: {error}" for table, error in errors.items()),
        hint="mend the cause, release the tables that are quarantined, and clear this task; the other tables are done"
        " and are left alone",
        tables=", ".join(errors),
    )
