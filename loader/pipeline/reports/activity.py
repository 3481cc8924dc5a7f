"""What the newest intervals did: rows of each table by operation, commit times, and statements."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from loader.pipeline.reports.interval_details import IntervalState, states_with_manifests
from loader.settings import SourceSettings
from loader.staging.documents import Manifest


class TableActivity(NamedTuple):
    """The staged records of a table in an interval, by operation."""

    table: str
    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    def plus(self, inserts: int, updates: int, deletes: int) -> TableActivity:
        """Return the sum of these and other records of the table."""
        return TableActivity(self.table, self.inserts + inserts, self.updates + updates, self.deletes + deletes)


class Statement(NamedTuple):
    """A statement of the log that concerns captured tables as a whole. Empty `tables`: they are unknown."""

    position: str
    statement: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class IntervalActivity:
    """An interval and what it did.

    Attributes:
        state: of the interval.
        committed_at: the newest commit time in the interval, in UTC; empty if it has no commit or is not staged.
        applied_at: when the tables had the interval at the latest, by the clock of the store; None before. A record is
            written again for a table that was behind, so the earliest time of it and of later records counts.
        log_bytes: of the log that it covers; 0 if it is not staged.
        tables: those with staged records, by name.
        statements: in the order of the log.
    """

    state: IntervalState
    committed_at: str = ""
    applied_at: datetime | None = None
    log_bytes: int = 0
    tables: tuple[TableActivity, ...] = ()
    statements: tuple[Statement, ...] = ()


def activity(settings: SourceSettings, limit: int) -> list[IntervalActivity]:
    """Return the newest intervals of the source in order, with what they did.

    Args:
        settings: of the source.
        limit: how many. The number of requests is that of `intervals`.
    """
    found = deque((_activity(*one) for one in states_with_manifests(settings, limit)), maxlen=limit)
    return _with_applied_times(list(found))


def _with_applied_times(intervals: Sequence[IntervalActivity]) -> list[IntervalActivity]:
    """Return the intervals with the earliest time at which a record of them, or of a later interval, was written."""
    found: list[IntervalActivity] = []
    earliest: datetime | None = None
    for one in reversed(intervals):
        if published := one.state.published_at:
            earliest = min(published, earliest or published)
        found.append(replace(one, applied_at=earliest))
    return found[::-1]


def _activity(state: IntervalState, manifest: Manifest | None) -> IntervalActivity:
    if manifest is None:
        return IntervalActivity(state=state)
    return IntervalActivity(
        state=state,
        committed_at=manifest.committed_at,
        log_bytes=manifest.balance.bytes if manifest.balance else 0,
        tables=_rows(manifest),
        statements=tuple(Statement(one.position, one.statement, one.tables) for one in manifest.barriers),
    )


def _rows(manifest: Manifest) -> tuple[TableActivity, ...]:
    found: dict[str, TableActivity] = {}
    for file in manifest.files:
        name = sys.intern(str(file.name))  # the same in each interval
        found[name] = found.get(name, TableActivity(name)).plus(file.inserts, file.updates, file.deletes)
    return tuple(found[name] for name in sorted(found))
