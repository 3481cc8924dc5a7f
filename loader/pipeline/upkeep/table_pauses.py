"""Pausing and resuming tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loader.errors import UsageError
from loader.materialise.merge.table_selection import known_tables
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.upkeep.quarantine_release import quarantines_of
from loader.settings import SourceSettings
from loader.staging.filters import find_unmatched, matches
from loader.staging.notes.pauses import Pause, Pauses
from loader.store.registry import open_store


def pauses_of(settings: SourceSettings) -> Pauses:
    """Return the pauses of the source."""
    return Pauses(open_store(settings.staging_root), settings.name)


def pause(settings: SourceSettings, tables: Sequence[str], by: str, reason: str) -> tuple[Pause, ...]:
    """Stop merging tables from the next run on, and return their pauses. Their changes are still staged.

    A table that is paused already keeps its pause.

    Args:
        settings: of the source.
        tables: names or patterns over `schema.table`. Tables that are created later are not paused.
        by: who pauses them.
        reason: why.

    Raises:
        UsageError: there is no reason, or a pattern matches no table of the source.
        LoaderError: the source was never loaded.
    """
    if not reason.strip():
        raise UsageError("a pause needs a reason", hint="loader pause SCHEMA.TABLE --reason TEXT")
    found = _matching(settings, _known(settings), tables, "the source has no such table")
    pauses = pauses_of(settings)
    return tuple(pauses.begin(table, by, reason.strip()) for table in found)


def resume(settings: SourceSettings, tables: Sequence[str]) -> tuple[Pause, ...]:
    """Let the next run merge paused tables again, from their applied positions. Return the pauses that ended.

    Args:
        settings: of the source.
        tables: names or patterns over `schema.table`.

    Raises:
        UsageError: a pattern matches no paused table.
    """
    pauses = pauses_of(settings)
    known = pauses.all()
    ended = [known[table] for table in _matching(settings, known, tables, "the source has no such paused table")]
    for one in ended:
        pauses.end(one)
    return tuple(ended)


def refuse_paused(settings: SourceSettings, tables: Sequence[str]) -> None:
    """Refuse to replace the rows of paused tables.

    Args:
        settings: of the source.
        tables: names of the tables; empty for all tables.

    Raises:
        UsageError: a table is paused.
    """
    found = [one for table, one in pauses_of(settings).all().items() if not tables or str(table) in tables]
    if found:
        resumed = "; ".join(f"loader resume {one.name.argument}" for one in found)
        raise UsageError(
            "paused tables cannot be loaded again",
            why="; ".join(f"{one.table} is {one.note}" for one in found),
            hint=f"{resumed}; then load them again",
            source=settings.name,
        )


def _known(settings: SourceSettings) -> set[TableName]:
    """Return the tables that the warehouse has or will have, and the tables that are behind."""
    plans = chain_of(settings)
    chain = Chain(plans.store, settings.name, plans.require_generation().name)
    record = chain.newest_published()
    behind = set(map(TableName.parse, record.behind if record else ()))
    return known_tables(chain, record) | behind | set(quarantines_of(settings).all())


def _matching(
    settings: SourceSettings, known: Iterable[TableName], patterns: Sequence[str], what: str
) -> list[TableName]:
    """Return the tables that match a pattern, sorted.

    Raises:
        UsageError: a pattern matches none.
    """
    tables = sorted(known)
    if (pattern := find_unmatched(patterns, tables)) is not None:
        raise UsageError(
            what,
            why=f"{pattern} matches none of: {', '.join(map(str, tables))}" if tables else "there are none",
            hint="loader status",
            source=settings.name,
        )
    return [table for table in tables if matches(table, patterns)]
