"""Times in the format of staged files and documents."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)


def moment(micros: int) -> str:
    """Return microseconds since 1970 as UTC text: `2026-01-31 12:00:00.000000`. It sorts by time from year 1000 on."""
    return f"{_EPOCH + timedelta(microseconds=micros):%F %T.%f}"
