"""A run that overtakes an older one: the record of the older run cannot have the tables that are past its stop."""

from __future__ import annotations

from typing import Any

import pytest

from loader.errors import RetryableError
from loader.materialise.merge import source_run
from loader.materialise.merge.carry_over import carry_over
from loader.model.table import TableSchema
from loader.staging.documents import Barrier
from tests.integration.materialise.faults.test_quarantine import COLUMNS, ITEMS, insert, record, statuses
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.staged_writer import barrier, number, position, table

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

MADE = table("made", COLUMNS, ["id"])


def interval(lake: Lake, start: int, *tables: TableSchema, creates: tuple[TableSchema, ...] = ()) -> None:
    """Stage a thousand bytes of log, with a row for each of the tables after the statements that create some."""
    created: list[Barrier] = [
        barrier(start + 20 + place, f"CREATE TABLE {one.name.table} (id INT PRIMARY KEY, name TEXT)", one.name.table)
        for place, one in enumerate(creates)
    ]
    rows = [(one, [insert(start + 100)]) for one in tables]
    lake.staging.interval(position(1, start), position(1, start + 1000), rows, created)


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run ends before it publishes."""
    original = source_run.publish

    def publish(*_: Any) -> str:
        monkeypatch.setattr(source_run, "publish", original)
        raise RetryableError("the store does not answer")

    monkeypatch.setattr(source_run, "publish", publish)


@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_a_table_that_the_log_created_comes_back_to_the_view(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, early: bool, quiet: bool
) -> None:
    """`early`: a record has the table before both runs."""
    first, later = ((ITEMS, MADE), ()) if early else ((ITEMS,), (MADE,))
    lake.staging.interval(position(1, 4), position(1, 1000))
    interval(lake, 1000, *first, creates=first)
    assert set(record(lake, lake.merged()).tables) == {str(one.name) for one in first}
    interval(lake, 2000, ITEMS, MADE, creates=later)
    interval(lake, 3000, *(() if quiet else (ITEMS,)))
    fail_once(monkeypatch)
    with pytest.raises(RetryableError):
        lake.merged()
    older = record(lake, lake.merged(through=number(1, 3000)))
    assert (set(older.tables), older.behind) == (set(), {})
    assert set(older.ahead) == {"shop.items", "shop.made"}
    assert carry_over(lake.merge_spec()) is None
    last = lake.merged()
    assert statuses(last) == {"items": "already", "made": "already"}
    done = record(lake, last)
    heads = {name: lake.metadata(one).head for name, one in (("shop.items", ITEMS), ("shop.made", MADE))}
    assert {name: one.snapshot for name, one in done.tables.items()} == heads
    assert done.ahead == ()
