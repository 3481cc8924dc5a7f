"""The note of a run: one line that says what a run did and where the source is now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loader.pipeline import SourceLag

NOTE = "note"  # XCom key
_TABLES_NAMED = 5


def run_note(results: Sequence[dict[str, Any]], lag: SourceLag | None) -> str:
    """Return interval, rows by operation, lag, tables behind, postponed tables, and tables that are not loaded.

    Args:
        results: of the run's tasks, in order; of each table the last result counts.
        lag: of the source after the run; None if it is unknown.
    """
    tables = {table["table"]: table for result in results for table in result.get("tables", [])}
    applied = [table for table in tables.values() if table.get("status") == "applied"]
    interval = [f"{one['start']} to {one['stop']}" for one in results if one.get("start")][:1]
    sums = [sum(table.get(name, 0) for table in applied) for name in ("inserts", "updates", "deletes")]
    rows = "{:,} inserted, {:,} updated, {:,} deleted in {} tables".format(*sums, len(applied))
    missing = [name for result in results for name in result.get("unloaded", ())]
    unloaded = [f"{len(missing)} tables not loaded: {_named(missing)}"] if missing else []
    return "; ".join([*interval, rows, *_lag_notes(lag), *unloaded])


def _lag_notes(lag: SourceLag | None) -> list[str]:
    if lag is None:
        return ["lag unknown"]
    seconds = "unknown time" if lag.lag_seconds is None else f"{lag.lag_seconds:,.0f} s"
    size = "unknown bytes" if lag.behind is None else f"{lag.behind:,} bytes"
    behind = lag.tables_behind
    named = f"{len(behind)} tables behind: {_named(behind)}"
    postponed = f"{len(lag.postponed)} tables postponed: {_named([one.table for one in lag.postponed])}"
    found = [f"{seconds} and {size} behind the server", *([named] if behind else [])]
    return [*found, *([postponed] if lag.postponed else [])]


def _named(tables: Sequence[str]) -> str:
    more = [f"and {len(tables) - _TABLES_NAMED} more"] if len(tables) > _TABLES_NAMED else []
    return ", ".join([*tables[:_TABLES_NAMED], *more])
