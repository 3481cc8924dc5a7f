"""Moments as staged files and documents write them."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)


def moment(micros: int) -> str:
    """Microseconds since 1970 as `2026-01-31 12:00:00.000000`, in UTC; sorts as time does from year 1000 on."""
    return f"{_EPOCH + timedelta(microseconds=micros):%F %T.%f}"
