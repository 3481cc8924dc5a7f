"""What intervals did: rows of each table, commit times, statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.pipeline import Statement, TableActivity, activity, intervals
from loader.staging.documents import Plan
from tests.unit.pipeline.site import ITEMS, ORDERS, Site, shop


@pytest.fixture
def site(tmp_path: Path) -> Site:
    log, _ = shop(4)
    log.begin(5)
    log.table_map(ORDERS)
    log.update(ORDERS, ((0, "a"), (0, "b")), ((1, "a"), (1, "b")))
    log.table_map(ORDERS)
    log.delete(ORDERS, (2, "c"))
    log.xid()
    log.gtid()
    log.query("ALTER TABLE items COMMENT 'of orders'", "shop")
    log.insert(ITEMS, (9, 9), number=7)
    return Site(tmp_path, log)


@pytest.fixture
def plans(site: Site) -> list[Plan]:
    """Two staged intervals, and a planned one."""
    ends = shop(4)[1]
    made = [site.plan(end) for end in (ends[1], ends[3])]
    made.append(site.plan(len(site.log)))
    for plan in made:
        site.extract(plan)
    return made


def test_each_interval_has_its_rows_and_statements(site: Site, plans: list[Plan]) -> None:
    site.publish(plans[0], "shop.orders", "shop.items")
    found = activity(site.settings, 10)
    assert [one.state for one in found] == intervals(site.settings)
    assert [one.state.state for one in found] == ["applied", "staged", "staged"]
    both = (TableActivity(table="shop.items", inserts=2), TableActivity(table="shop.orders", inserts=2))
    assert [one.tables for one in found[:2]] == [both, both]
    assert found[2].tables == (
        TableActivity(table="shop.items", inserts=1),
        TableActivity(table="shop.orders", updates=2, deletes=1),
    )
    assert [one.statements for one in found[:2]] == [(), ()]
    (statement,) = found[2].statements
    assert isinstance(statement, Statement)
    assert (statement.statement, statement.tables) == ("ALTER TABLE items COMMENT 'of orders'", ("shop.items",))
    assert [one.committed_at for one in found] == [site.extract(plan).committed_at for plan in plans]


def test_the_newest_ones_only(site: Site, plans: list[Plan]) -> None:
    assert [one.state.start for one in activity(site.settings, 2)] == [plans[1].start, plans[2].start]


def test_a_planned_interval_did_nothing_yet(tmp_path: Path) -> None:
    log, ends = shop(1)
    planned = Site(tmp_path, log)
    planned.plan(ends[0])
    (found,) = activity(planned.settings, 5)
    assert (found.state.state, found.committed_at, found.tables, found.statements) == ("planned", "", (), ())
