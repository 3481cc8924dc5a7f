"""When a published record may stand for a table's applied position."""

from __future__ import annotations

import pytest

from loader.materialise.history import Applied
from loader.materialise.published import known_through
from loader.model.table import TableName
from loader.staging.documents import Published, PublishedTable

RECORD = Published(
    source="shop",
    generation="g1",
    stop="binlog.000001:50",
    stop_seqno=50,
    tables={"shop.orders": PublishedTable(snapshot=7, applied=20)},
)


@pytest.mark.parametrize(
    ("snapshot", "applied", "through"),
    [(7, 20, 50), (8, 60, 60), (8, 20, 20), (6, 10, 10), (7, 19, 19)],
    ids=["quiet since", "merged since", "loaded again", "rolled back", "another table of that name"],
)
def test_only_the_same_newest_commit_counts(snapshot: int, applied: int, through: int) -> None:
    stands = Applied(applied, f"binlog.000001:{applied}", "shop", "g1", snapshot, "s")
    assert known_through(RECORD, TableName("shop", "orders"), stands) == through


def test_without_a_record_the_applied_position_stands() -> None:
    stands = Applied(20, "binlog.000001:20", "shop", "g1", 7, "s")
    assert known_through(None, TableName("shop", "orders"), stands) == 20
    assert known_through(RECORD, TableName("shop", "other"), stands) == 20
