"""Which branches of a table may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from loader.materialise.iceberg.branch import PREFIX, replay_branch_name
from loader.materialise.maintain.snapshot_retention import find_dead_branches

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
    merge, replay = f"{PREFIX}0a1b", PREFIX + replay_branch_name(54_000_000_000_123)
    rolled = f"{PREFIX}{replay_branch_name(54_000_000_000_123)}_for_1"
    table = Line(
        head=1,
        parents={0: None, 1: 0, 2: 1, 3: 1, 4: 0},
        branches={"main": 1, merge: 2, replay: 3, rolled: 4, "users": 4},
        snapshots=dict.fromkeys(range(5), LONG_AGO),
    )
    assert dead_of(table, before=LONG_AGO) == []
    assert dead_of(table, before=NOW) == [merge]
    table.parents[5], table.snapshots[5], table.head = 1, NOW, 5
    assert dead_of(table, before=NOW) == [merge, replay, rolled]
    assert dead_of(table, before=LONG_AGO) == [merge, replay, rolled]
