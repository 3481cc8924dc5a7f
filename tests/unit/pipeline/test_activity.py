"""What intervals did: rows of each table, commit times, statements."""

from __future__ import annotations

import os
from datetime import UTC, datetime
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


def test_when_intervals_were_staged_and_applied(site: Site, plans: list[Plan]) -> None:
    """A record holds for the intervals before it, and it is written again when a table catches up."""
    site.publish(plans[1], "shop.orders", "shop.items")
    folders = [site.folder / "staging" / site.chain.folder("0001", plan.start_seqno) for plan in plans]
    for folder, second in zip(folders, (10, 20, 30), strict=True):
        os.utime(folder / "manifest.json", (second, second))
    os.utime(folders[1] / "published.json", (50, 50))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    def times() -> list[tuple[float, float | None]]:
        found = [(one.state.staged_at, one.applied_at) for one in activity(site.settings, 10)]
        return [((a - epoch).total_seconds(), b and (b - epoch).total_seconds()) for a, b in found if a]

    assert times() == [(10, 50), (20, 50), (30, None)]
    site.publish(plans[2], "shop.orders", "shop.items")
    os.utime(folders[2] / "published.json", (60, 60))
    os.utime(folders[1] / "published.json", (90, 90))
    assert times() == [(10, 60), (20, 60), (30, 60)]


def test_the_newest_ones_only(site: Site, plans: list[Plan]) -> None:
    assert [one.state.start for one in activity(site.settings, 2)] == [plans[1].start, plans[2].start]


def test_a_planned_interval_did_nothing_yet(tmp_path: Path) -> None:
    log, ends = shop(1)
    planned = Site(tmp_path, log)
    planned.plan(ends[0])
    (found,) = activity(planned.settings, 5)
    assert (found.state.state, found.committed_at, found.tables, found.statements) == ("planned", "", (), ())
