"""The intervals before and behind a seqno are found whatever lies where."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.staging import interval_starts as module
from loader.staging.interval_starts import IntervalStarts
from loader.store import base
from tests.support.memory_store import MemoryStore


class Listed(MemoryStore):
    """Folders of these names alone, in pages of three."""

    def __init__(self, found: list[int]) -> None:
        super().__init__()
        self.names = [*(f"{start:020d}" for start in found), "filled", "load"]
        self.requests = 0

    def folders_after(self, prefix: str, after: str) -> base.Page:
        self.requests += 1
        first = bisect_right(self.names, after)
        return base.Page(tuple(self.names[first : first + 3]), first + 3 < len(self.names))


@given(
    found=st.sets(st.one_of(st.integers(0, 60), st.integers(0, 10**18)), max_size=30).map(sorted),
    at=st.one_of(st.integers(0, 70), st.integers(0, 10**18)),
    span=st.sampled_from([1, 10, module._SPAN]),
)
def test_what_is_listed_page_by_page_is_what_is_there(found: list[int], at: int, span: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SPAN", span)
        starts = IntervalStarts(Listed(found), "shop", "0001")
        assert list(starts.ascending()) == found
        assert list(starts.ascending(at)) == found[bisect_right(found, at) :]
        assert list(starts.descending()) == found[::-1]
        assert list(starts.descending(at)) == found[: bisect_left(found, at)][::-1]


def test_the_last_one_of_many_is_found_in_few_requests() -> None:
    many = Listed([number * 10**6 for number in range(100_000)])
    assert next(IntervalStarts(many, "shop", "0001").descending()) == 99_999 * 10**6
    assert many.requests < 100
    many.requests = 0
    assert next(IntervalStarts(many, "shop", "0001").descending(50_000 * 10**6 + 1)) == 50_000 * 10**6
    assert many.requests < 30
