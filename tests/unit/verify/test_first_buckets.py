"""Of a large difference, only as many buckets are compared row by row as fit into memory."""

from __future__ import annotations

import pytest

from loader.verify.verify import first_buckets


@pytest.mark.parametrize(
    ("sizes", "shown"),
    [
        ([], 0),
        ([1000] * 5, 5),
        ([1000] * 50, 16),
        ([30_000] * 50, 3),
        ([100_001, 1], 1),  # a bucket is compared as a whole
        ([40_000, 70_000, 1], 1),
    ],
)
@pytest.mark.parametrize("on_server", [True, False])
def test_buckets_are_compared_while_their_rows_fit(sizes: list[int], shown: int, on_server: bool) -> None:
    sums = {bucket: (rows, 7) for bucket, rows in enumerate(sizes)}
    server, warehouse = (sums, {}) if on_server else ({}, sums)
    assert list(first_buckets(list(sums), server, warehouse)) == list(range(shown))
