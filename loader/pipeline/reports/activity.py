"""What the newest intervals did: rows of each table by operation, commit times, and statements."""

from __future__ import annotations

from collections import deque

from pydantic import BaseModel, ConfigDict

from loader.pipeline.reports.interval_details import IntervalState, states_with_manifests
from loader.settings import SourceSettings
from loader.staging.documents import Manifest


class TableRows(BaseModel):
    """The staged records of a table in an interval, by operation."""

    model_config = ConfigDict(frozen=True)

    table: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def total(self) -> int:
        """The number of staged records."""
        return self.inserts + self.updates + self.deletes

    def plus(self, inserts: int, updates: int, deletes: int) -> TableRows:
        """Return the sum of these and other records of the table."""
        return TableRows(
            table=self.table,
            inserts=self.inserts + inserts,
            updates=self.updates + updates,
            deletes=self.deletes + deletes,
        )


class Statement(BaseModel):
    """A statement of the log that concerns captured tables as a whole. Empty `tables`: they are unknown."""

    model_config = ConfigDict(frozen=True)

    position: str
    statement: str
    tables: tuple[str, ...]


class IntervalActivity(BaseModel):
    """An interval and what it did.

    Attributes:
        committed_at: the newest commit time in the interval, in UTC; empty if it has no commit or is not staged.
        tables: those with staged records, by name.
        statements: in the order of the log.
    """

    model_config = ConfigDict(frozen=True)

    state: IntervalState
    committed_at: str = ""
    tables: tuple[TableRows, ...] = ()
    statements: tuple[Statement, ...] = ()


def activity(settings: SourceSettings, limit: int) -> list[IntervalActivity]:
    """Return the newest intervals of the source in order, with what they did.

    Args:
        settings: of the source.
        limit: how many. The number of requests is that of `intervals`.
    """
    found = deque((_activity(*one) for one in states_with_manifests(settings, limit)), maxlen=limit)
    return list(found)


def _activity(state: IntervalState, manifest: Manifest | None) -> IntervalActivity:
    if manifest is None:
        return IntervalActivity(state=state)
    return IntervalActivity(
        state=state,
        committed_at=manifest.committed_at,
        tables=_rows(manifest),
        statements=tuple(
            Statement(position=one.position, statement=one.statement, tables=one.tables) for one in manifest.barriers
        ),
    )


def _rows(manifest: Manifest) -> tuple[TableRows, ...]:
    found: dict[str, TableRows] = {}
    for file in manifest.files:
        name = str(file.name)
        found[name] = found.get(name, TableRows(table=name)).plus(file.inserts, file.updates, file.deletes)
    return tuple(found[name] for name in sorted(found))
