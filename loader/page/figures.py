"""Numbers, times and sizes as people read them."""

from __future__ import annotations

from datetime import datetime

from loader.source.retention import Runway

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_SIZES = ("bytes", "kB", "MB", "GB", "TB")
_STEP = 1000


def count(number: int) -> str:
    """Return `1,234,567`."""
    return f"{number:,}"


def duration(seconds: float) -> str:
    """Return the two largest units: `2 d 4 h`, `3 min 20 s`, `0 s`."""
    rest = round(seconds)
    for place, (unit, size) in enumerate(_UNITS):
        if rest >= size and place + 1 < len(_UNITS):
            smaller, unit_seconds = _UNITS[place + 1]
            part = rest % size // unit_seconds
            return f"{rest // size} {unit} {part} {smaller}" if part else f"{rest // size} {unit}"
    return f"{rest} s"


def size(number: int) -> str:
    """Return `850 bytes`, `1.2 GB`."""
    value, place = float(number), 0
    while value >= _STEP and place + 1 < len(_SIZES):
        value, place = value / _STEP, place + 1
    return f"{value:,.1f} {_SIZES[place]}" if place else f"{number} bytes"


def time(moment: datetime) -> str:
    """Return `2026-01-31 12:00:00`."""
    return f"{moment:%F %T}"


def commit_time(text: str) -> str:
    """Return the commit time of a document without its fraction; `none` for no commit."""
    return text.partition(".")[0] or "none"


def runway(found: Runway | None) -> str:
    """Return how long the server keeps the oldest log file that is not staged."""
    if found is None:
        return "unknown"
    if found.rule == "gone":
        return "already purged"
    return "forever" if found.hours is None else duration(found.hours * 3600)
