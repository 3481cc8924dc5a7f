"""Tables that their rules merge once in each period. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_now() -> datetime:
    """Return the time by which tables are due."""
    return datetime.now(UTC)


def next_due(committed: datetime, period: timedelta) -> datetime:
    """Return when a table is due that was committed to at a time: at the end of the period of that time.

    Periods are counted from 1970-01-01 UTC. So all tables with the same period are merged in the same run.
    """
    return _EPOCH + ((committed - _EPOCH) // period + 1) * period


def is_due(due: datetime, period: timedelta, now: datetime) -> bool:
    """Return whether a table is due. It also is if its last commit is later than this period: a clock was wrong."""
    return not due - period <= now < due


def cadence_note(every: str, due: datetime) -> str:
    """Return why a table is not merged, for people."""
    return f"merged every {every}, next after {due:%F %T} UTC"
