"""Rates of a job's progress, and the time that is left."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from loader.spark.progress import Progress

Clock = Callable[[], float]


class Meter:
    """Describes progress with its rate and the time that is left, both since the first report of the piece."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: dict[str, tuple[float, Progress]] = {}

    def rates(self, progress: Progress) -> tuple[int | None, int | None]:
        """Return rows per second and the seconds that are left; None for what is not known yet."""
        now = self._clock()
        began, first = self._first.setdefault(progress.name, (now, progress))
        seconds, rows, done = now - began, progress.rows - first.rows, progress.done - first.done
        if seconds <= 0:
            return None, None
        left = (progress.total - progress.done) * seconds / done if done and progress.total > progress.done else None
        return round(rows / seconds) if rows else None, None if left is None else round(left)

    def text(self, progress: Progress) -> str:
        """Return units, rows, bytes, rate and time left."""
        rate, left = self.rates(progress)
        whole = f"{progress.done:,} of {progress.total:,}" if progress.total else f"{progress.done:,}"
        parts = [f"{whole} {progress.unit}", f"{progress.rows:,} rows"]
        if progress.bytes:
            parts.append(f"{progress.bytes / 1e6:,.1f} MB")
        if rate is not None:
            parts.append(f"{rate:,} rows/s")
        if left is not None:
            parts.append(f"{timedelta(seconds=left)} left")
        return ", ".join(parts)
