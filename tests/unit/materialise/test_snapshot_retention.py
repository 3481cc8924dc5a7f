"""Which branches and snapshots of a table may go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from loader.materialise.iceberg.branch import PREFIX, replay_branch_name
from loader.materialise.iceberg.table_metadata import EXACT_AT_SEQNO, Applied, Snapshot
from loader.materialise.maintain.snapshot_retention import find_dead_branches, find_expirable

LONG_AGO, NOW = 1, 100


@dataclass
class Line:
    """A table whose snapshots have one parent each, by their ids, and were made at these times."""

    head: int
    parents: dict[int, int | None]
    branches: dict[str, int]
    snapshots: dict[int, int] = field(default_factory=dict)

    def descends(self, snapshot: int | None, ancestor: int) -> bool:
        while snapshot is not None and snapshot != ancestor:
            snapshot = self.parents[snapshot]
        return snapshot == ancestor


def dead_of(table: Line, before: int) -> list[str]:
    return find_dead_branches(cast("Any", table), before)


def test_a_replay_is_kept_until_main_moves_and_a_merge_for_a_while() -> None:
    merge, replay = PREFIX + "0a1b" * 8, PREFIX + replay_branch_name(54_000_000_000_123)
    rolled = f"{PREFIX}{replay_branch_name(54_000_000_000_123)}_for_1"
    table = Line(
        head=1,
        parents={0: None, 1: 0, 2: 1, 3: 1, 4: 0},
        branches={"main": 1, merge: 2, replay: 3, rolled: 4, "users": 4, "loader_users": 4},
        snapshots=dict.fromkeys(range(5), LONG_AGO),
    )
    assert dead_of(table, before=LONG_AGO) == []
    assert dead_of(table, before=NOW) == [merge]
    table.parents[5], table.snapshots[5], table.head = 1, NOW, 5
    assert dead_of(table, before=NOW) == [merge, replay, rolled]
    assert dead_of(table, before=LONG_AGO) == [merge, replay, rolled]


class Merged:
    """A table with commits 1 to 5 of the loader, at the seqnos 100 to 500, and a compaction 6."""

    head = 6

    def __init__(self) -> None:
        self.referenced_snapshots = {6}
        self.snapshots = dict.fromkeys(range(1, 7), LONG_AGO)

    def ancestry(self, snapshot: int) -> Iterator[Snapshot]:
        return (Snapshot(one, one - 1 or None, {}) for one in range(snapshot, 0, -1))

    def applied_positions(self) -> Iterator[Applied]:
        return (Applied(one * 100, f"binlog.000001:{one * 100}", "shop", "0001", one, "s") for one in range(5, 0, -1))


@pytest.mark.parametrize(
    ("behind", "expirable"),
    [(None, [1, 2, 3, 4]), (500, [1, 2, 3, 4]), (499, [1, 2, 3]), (400, [1, 2, 3]), (250, [1]), (100, []), (50, [])],
)
def test_main_is_kept_back_to_the_position_of_a_table_behind(behind: int | None, expirable: list[int]) -> None:
    table = cast("Any", Merged())
    applied = next(table.applied_positions())
    assert find_expirable(table, applied, set(), NOW, behind) == expirable
    assert find_expirable(table, applied, {2}, NOW, behind) == [one for one in expirable if one < 2]
    assert find_expirable(table, applied, set(), LONG_AGO, behind) == []


@pytest.mark.parametrize(
    ("exact_at", "behind", "expirable"),
    [(501, None, [1]), (500, None, [1, 2, 3, 4]), (500, 499, [1]), (499, 499, [1, 2, 3])],
)
def test_a_load_is_kept_until_the_tables_are_merged_up_to_its_end(
    exact_at: int, behind: int | None, expirable: list[int]
) -> None:
    class Loaded(Merged):
        def ancestry(self, snapshot: int) -> Iterator[Snapshot]:
            for one in super().ancestry(snapshot):
                yield replace(one, summary={EXACT_AT_SEQNO: str(exact_at)}) if one.id == 2 else one

    table = cast("Any", Loaded())
    assert find_expirable(table, next(table.applied_positions()), set(), NOW, behind) == expirable
