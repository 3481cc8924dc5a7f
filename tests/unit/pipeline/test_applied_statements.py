"""Which statements the tables of the warehouse have now and did not have before."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.pipeline import AppliedUpTo, Statement, applied_statements
from loader.staging.documents import Plan
from tests.unit.binlog.builder import LogBuilder
from tests.unit.pipeline.site import ORDERS, Site

_STATEMENTS = (
    "ALTER TABLE orders ADD COLUMN n INT",
    "ALTER TABLE items COMMENT 'no change of columns'",
    "TRUNCATE TABLE items",
    "RENAME TABLE items TO things",
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An interval with a row, and one with statements for each of the intervals after it."""
    log = LogBuilder()
    log.insert(ORDERS, (1, "a"), number=1)
    for statement in _STATEMENTS:
        log.gtid()
        log.query(statement, "shop")
    return Site(tmp_path, log)


@pytest.fixture
def plans(site: Site) -> list[Plan]:
    log = LogBuilder()
    log.insert(ORDERS, (1, "a"), number=1)
    first = site.plan(log.end)
    second = site.plan(len(site.log))
    for plan in (first, second):
        site.extract(plan)
    return [first, second]


def told(found: tuple[Statement, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.statement, one.tables) for one in found]


def test_statements_count_once_a_record_has_them(site: Site, plans: list[Plan]) -> None:
    before = AppliedUpTo(stop_seqno=plans[0].start_seqno)
    assert applied_statements(site.settings, before) == ((), before)
    site.publish(plans[0], "shop.orders", "shop.items")
    first = applied_statements(site.settings, before)
    assert first == ((), AppliedUpTo(stop_seqno=plans[0].stop_seqno))
    site.publish(plans[1], "shop.orders", "shop.things")
    second = applied_statements(site.settings, first.applied)
    # To empty a table, or to change a comment, is no change of the schema.
    assert told(second.statements) == [(_STATEMENTS[0], ("shop.orders",)), (_STATEMENTS[3], ("shop.things",))]
    assert second.applied == AppliedUpTo(stop_seqno=plans[1].stop_seqno)
    assert applied_statements(site.settings, second.applied) == ((), second.applied)


def test_a_table_that_is_behind_has_them_once_it_is_merged(site: Site, plans: list[Plan]) -> None:
    stopped = plans[0].stop_seqno
    site.publish(plans[1], "shop.things", behind={"shop.orders": stopped})
    found = applied_statements(site.settings, AppliedUpTo(stop_seqno=stopped))
    assert told(found.statements) == [(_STATEMENTS[3], ("shop.things",))]
    assert found.applied == AppliedUpTo(stop_seqno=plans[1].stop_seqno, behind={"shop.orders": stopped})
    assert applied_statements(site.settings, found.applied) == ((), found.applied)
    key = f"{site.chain.folder('0001', plans[1].start_seqno)}/published.json"
    site.store.delete(key)
    site.publish(plans[1], "shop.things", "shop.orders")  # it was released, and the record is completed
    later = applied_statements(site.settings, found.applied)
    assert told(later.statements) == [(_STATEMENTS[0], ("shop.orders",))]


def test_a_table_that_is_not_in_the_warehouse_has_nothing(site: Site, plans: list[Plan]) -> None:
    site.publish(plans[1], "shop.customers")
    found = applied_statements(site.settings, AppliedUpTo(stop_seqno=plans[0].stop_seqno))
    assert found == ((), AppliedUpTo(stop_seqno=plans[1].stop_seqno))
