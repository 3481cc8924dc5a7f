"""The intervals of a generation by the names of their folders, found page by page without listing all of them."""

from __future__ import annotations

from collections.abc import Iterator

from loader.staging.layout import chain_folder
from loader.store.base import Store

ENDLESS = 1 << 62
"""Behind every seqno."""
_SPAN = 10**9  # of seqnos, in bytes of log: where a search back begins
_GROWTH = 64


class IntervalStarts:
    """Start seqnos of a generation's intervals, whether or not they have a plan.

    The number of requests of a search depends on the distance between seqnos by its logarithm, and not on how many
    intervals there are.
    """

    def __init__(self, store: Store, source: str, generation: str) -> None:
        self._store = store
        self._prefix = f"{chain_folder(source, generation)}/"

    def ascending(self, after: int = -1) -> Iterator[int]:
        """All that are greater than a seqno."""
        while True:
            page, more = self._page(after)
            yield from page
            if not more:
                return
            after = page[-1]

    def descending(self, below: int = ENDLESS) -> Iterator[int]:
        """All that are less than a seqno, the largest one first."""
        while page := self._page_below(below):
            yield from reversed(page)
            below = page[0]

    def _page_below(self, below: int) -> tuple[int, ...]:
        """The last ones below a seqno, none of them left out; empty where there is none."""
        last: tuple[int, ...] = ()  # the furthest page that was full; none is in [high, below)
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
                # After a full page the next one, and if that is full too, the middle of what is left.
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
        return starts, more and len(starts) == len(names)  # names that are no number come behind all that are
