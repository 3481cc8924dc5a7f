"""Captured tables that a delta finds unloaded. It loads small ones if so configured, and names the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loader import pipeline
from loader.cli.jobs import submit
from loader.cli.output import Output
from loader.full_load.table_results import with_new_tables
from loader.settings import SourceSettings

_NAMED = 20


def load_new_tables(
    settings: SourceSettings, listed: pipeline.ListedTables | None, merged: dict[str, Any], output: Output
) -> tuple[dict[str, Any], tuple[pipeline.UnloadedTable, ...]]:
    """Load new tables after a delta. Return all results, and the tables that were not loaded before.

    Args:
        settings: of the source.
        listed: the tables before the delta.
        merged: the result of the merges.
        output: for progress.
    """
    found = pipeline.find_unloaded(settings, listed)
    names = tuple(one.table for one in found if one.action == "load")
    loaded = submit(pipeline.full_load_job(settings, names), settings, output) if names else None
    return with_new_tables(merged, loaded, {one.table: one.error for one in found if one.error}), found


def report_new_tables(output: Output, found: Sequence[pipeline.UnloadedTable]) -> None:
    """Print the tables that are not loaded, with the command that loads each."""
    for one in found[:_NAMED]:
        output.next_step(one.note)
    if len(found) > _NAMED:
        output.next_step(f"and {len(found) - _NAMED:,} more tables: loader initial-load --dry-run lists all")
