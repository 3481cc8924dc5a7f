"""The tables that jobs other than a merge look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from loader.materialise.merge.table_selection import known_tables
from loader.model.table import TableName
from loader.staging.published import PostponedTable, Published, PublishedTable


class NoLoads:
    """A chain without initial loads: the log made all tables."""

    def tables_with_load(self, known: set[TableName]) -> Iterator[TableName]:
        return iter(())


def test_a_table_that_a_record_does_not_show_is_known_if_the_warehouse_has_it() -> None:
    record = Published(
        source="shop",
        generation="0001",
        stop="binlog.000001:900",
        stop_seqno=900,
        tables={"shop.done": PublishedTable(snapshot=1, applied=900)},
        behind={"shop.paused": 800, "shop.paused_new": 800, "shop.quarantined": 800, "shop.never_loaded": 0},
        postponed={
            "shop.paused": PostponedTable(why="paused", snapshot=2, applied=800),
            "shop.paused_new": PostponedTable(why="paused"),
        },
        ahead=("shop.ahead",),
    )
    found = known_tables(cast("Any", NoLoads()), record)
    assert {name.table for name in found} == {"done", "ahead", "paused", "quarantined"}
