"""The start seqnos of a generation's intervals, read from folder names page by page instead of a full listing."""

from __future__ import annotations

from collections.abc import Iterator

from loader.staging.layout import chain_folder
from loader.store.base import Store

ENDLESS = 1 << 62
"""Greater than every seqno."""
_SPAN = 10**9  # seqnos, in bytes of log: the first step of a backward search
_GROWTH = 64


class IntervalStarts:
    """Start seqnos of a generation's intervals, with or without a plan.

    The number of requests of a search grows with the logarithm of the distance between seqnos, not with the number of
    intervals.
    """

    def __init__(self, store: Store, source: str, generation: str) -> None:
        self._store = store
        self._prefix = f"{chain_folder(source, generation)}/"

    def ascending(self, after: int = -1) -> Iterator[int]:
        """Yield start seqnos greater than `after`."""
        while True:
            page, more = self._page(after)
            yield from page
            if not more:
                return
            after = page[-1]

    def descending(self, below: int = ENDLESS) -> Iterator[int]:
        """Yield start seqnos less than `below`, the largest first."""
        while page := self.page_below(below):
            yield from reversed(page)
            below = page[0]

    def page_below(self, below: int) -> tuple[int, ...]:
        """Return the last start seqnos below a seqno, without gaps; empty if there are none."""
        last: tuple[int, ...] = ()  # the furthest full page; no start is in [high, below)
        high, span, halved = below, _SPAN, True
        probe = max(-1, high - span)
        while True:
            page, more = self._page(probe)
            found = tuple(start for start in page if start < below)
            if found and not (more and len(found) == len(page)):
                return found
            if found:
                last = found
            else:
                high = probe + 1
            if last:
                if high <= last[-1] + 1:
                    return last
                # After a full page, read the next page. If that is full as well, bisect the rest.
                halved = not (found and halved)
                probe = (last[-1] + high - 1) // 2 if halved else last[-1]
            elif probe < 0:
                return ()
            else:
                span *= _GROWTH
                probe = max(-1, high - span)

    def _page(self, after: int) -> tuple[tuple[int, ...], bool]:
        names, more = self._store.folders_after(self._prefix, f"{after:020d}" if after >= 0 else "")
        starts = tuple(int(name) for name in names if name.isdigit())
        return starts, more and len(starts) == len(names)  # names that are not numbers sort after all numbers
