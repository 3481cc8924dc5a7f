"""The newest report of each source, read at most once at a time.

A store or server that does not answer is tried for half a minute or longer. A page must not wait for that: it shows the
previous report and its age. However many browsers ask, a source is read by one thread, and at most once in a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread

from loader.page.reports.source_report import SourceReport

Read = Callable[[str], SourceReport]

_FRESH_SECONDS = 3.0
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Cached:
    """A report of the cache.

    Attributes:
        report: None if the source was never read to the end.
        waiting_seconds: since when a newer report is being read; 0 if none is.
    """

    report: SourceReport | None
    waiting_seconds: float = 0.0


@dataclass
class _Entry:
    """The state of one source. Times are of the monotonic clock.

    Attributes:
        read_at: when the report was read.
        took: seconds that this took.
        began: when the current reading began; 0 for none.
    """

    changed: Condition = field(default_factory=Condition)
    report: SourceReport | None = None
    read_at: float = 0.0
    took: float = 0.0
    began: float = 0.0


class ReportCache:
    """Reports of sources, for many threads.

    Args:
        read: reads a source. It raises nothing.
        fresh: seconds for which a report is not read again. A report that took longer is kept for as long as it took,
            so that a source with a long backlog is read half of the time at most.
        patience: seconds that `get` waits for a newer report.
    """

    def __init__(self, read: Read, *, fresh: float = _FRESH_SECONDS, patience: float = _PATIENCE_SECONDS) -> None:
        self._read, self._fresh, self._patience = read, fresh, patience
        self._entries: dict[str, _Entry] = {}
        self._lock = Lock()

    def get(self, sources: Sequence[str]) -> dict[str, Cached]:
        """Return the reports of sources by name: fresh ones, or after `patience` the previous ones."""
        until = time.monotonic() + self._patience
        entries = {source: self._refreshed(source) for source in sources}
        return {source: self._waited(entry, until) for source, entry in entries.items()}

    def _refreshed(self, source: str) -> _Entry:
        """Return the entry of a source, which is being read unless it is fresh."""
        with self._lock:
            entry = self._entries.setdefault(source, _Entry())
        with entry.changed:
            if entry.report is None or time.monotonic() - entry.read_at >= max(self._fresh, entry.took):
                self._begin(source, entry)
        return entry

    def _waited(self, entry: _Entry, until: float) -> Cached:
        with entry.changed:
            entry.changed.wait_for(lambda: not entry.began, max(0.0, until - time.monotonic()))
            return Cached(entry.report, time.monotonic() - entry.began if entry.began else 0.0)

    def _begin(self, source: str, entry: _Entry) -> None:
        """Begin to read a source, unless it is being read. The thread must not keep the process alive."""
        if not entry.began:
            entry.began = time.monotonic()
            Thread(target=self._fill, args=(source, entry), name=f"status of {source}", daemon=True).start()

    def _fill(self, source: str, entry: _Entry) -> None:
        try:
            entry.report = self._read(source).after(entry.report)
        finally:
            with entry.changed:
                entry.read_at = time.monotonic()
                entry.took, entry.began = entry.read_at - entry.began, 0.0
                entry.changed.notify_all()
