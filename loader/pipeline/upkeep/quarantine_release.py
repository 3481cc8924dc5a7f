"""Releasing quarantined tables."""

from __future__ import annotations

from loader.model.table import TableName
from loader.settings import SourceSettings
from loader.staging.notes.quarantine import Quarantine, Quarantines
from loader.store.registry import open_store


def quarantines_of(settings: SourceSettings) -> Quarantines:
    """Return the quarantines of the source."""
    return Quarantines(open_store(settings.staging_root), settings.name)


def release(settings: SourceSettings, table: str = "") -> tuple[Quarantine, ...]:
    """Let the next run attempt a quarantined table (`schema.table`) again, or all of them; return those released.

    Raises:
        UsageError: the table is not quarantined.
    """
    quarantines = quarantines_of(settings)
    found = (quarantines.require(TableName.parse(table)),) if table else tuple(quarantines.all().values())
    for one in found:
        quarantines.end(one)
    return found
