"""Skips that are withdrawn before a plan has them, and skips for which it is too late: on real servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.errors import DataError, LoaderError, UsageError
from loader.pipeline import chain_of
from loader.staging.notes.skips import Skips
from tests.integration.pipeline.shops import StartServer
from tests.integration.pipeline.skips.skipping_shop import SERVERS, SkippingShop, begun, ids
from tests.support.replicas import caught_up, options_of_replica, replicating

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "no-gtids", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> SkippingShop:
    kind, options = SERVERS[request.param]
    return begun(fresh_server(kind, options), tmp_path)


def refused(shop: SkippingShop, kind: type[LoaderError], place: str, *tables: str) -> LoaderError:
    """A withdrawal that is an error and changes nothing."""
    before = shop.states()
    with pytest.raises(kind) as caught:
        shop.withdraw(place, *tables)
    assert shop.states() == before
    assert caught.value.hint
    return caught.value


def rows(shop: SkippingShop) -> dict[str, list[int]]:
    """The keys of the next interval by table."""
    manifest = shop.extract(shop.planned())
    assert shop.again(manifest) == ()
    return {table: ids(lines) for table, lines in shop.staged(manifest).items()}


def test_rows_of_a_withdrawn_skip_are_staged_and_the_list_keeps_both(shop: SkippingShop) -> None:
    wrong, stop = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')", "INSERT INTO shop.items VALUES (1)")
    name = shop.gtid(stop)
    right, _ = shop.transaction("INSERT INTO shop.orders VALUES (2,'b')", "INSERT INTO shop.items VALUES (2)")
    shop.skip(str(wrong))
    shop.skip(str(right), "shop.items")
    for place in (name, str(wrong), f"{wrong.file}:{stop.logpos - 1}", str(stop.seqno())):  # cleared tasks repeat it
        (state,) = shop.withdraw(place)
        assert (state.state, state.applies_from, state.reason, state.by) == ("withdrawn", 0, "poison", "ann")
        assert state.why.startswith("by bob, ") and state.why.endswith(": wrong one")
    assert [one.state for one in shop.states()] == ["withdrawn", "waiting"]
    assert pipeline.find_skippable(shop.settings, name).records == ()
    chosen = shop.planned()
    plan = chain_of(shop.settings).require_plan(chosen.generation, chosen.start_seqno)
    assert [one.place for one in plan.skips] == [str(right)]
    assert rows(shop) == {"shop.orders": [1, 2], "shop.items": [1]}
    assert [one.state for one in shop.states()] == ["withdrawn", "used"]


def test_a_skip_that_came_after_the_plan_is_withdrawn_and_can_be_made_again(shop: SkippingShop) -> None:
    start, stop = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')", "INSERT INTO shop.items VALUES (1)")
    shop.planned()
    for number in range(1, 4):
        (made,) = shop.skip(str(start)).records
        assert (made.state, len(shop.states())) == ("waiting", number)
        shop.withdraw(str(start))
    shop.skip(str(start), "shop.items")
    shop.skip(str(start), "shop.orders")
    shop.withdraw(str(stop.seqno()), "shop.items")
    assert rows(shop) == {"shop.items": [1]}
    states = sorted((one.state, one.whole, one.tables) for one in shop.states())
    assert states == [
        ("used", False, ("shop.orders",)),
        ("withdrawn", False, ("shop.items",)),
        *[("withdrawn", True, ("shop.items", "shop.orders"))] * 3,
    ]


def test_a_skip_of_rows_that_were_left_out_is_withdrawn(shop: SkippingShop) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1, _hebrew X'61A1')")
    manifest = shop.delta()
    shop.skip(str(start), "shop.orders")
    shop.withdraw(str(start))
    shop.stage_again(manifest)
    assert [one.table for one in shop.stage_again(manifest).left_out] == ["shop.orders"]
    shop.skip(str(start), "shop.orders")
    assert shop.stage_again(manifest).left_out == ()
    assert "an interval lacks its rows" in refused(shop, UsageError, str(start)).why
    assert sorted(one.state for one in shop.states()) == ["used", "withdrawn"]


def test_what_a_plan_carries_or_an_interval_lacks_is_not_withdrawn(shop: SkippingShop) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')", "INSERT INTO shop.items VALUES (1)")
    shop.skip(str(start))
    chosen = shop.planned()
    error = refused(shop, UsageError, str(start))
    assert error.what == "the skip cannot be withdrawn any more"
    assert error.why == (
        f"the interval from {chosen.start} is planned without its rows, and plans and staged intervals never change"
    )
    assert "loader initial-load --table shop.items --table shop.orders --again; then: loader run" in error.hint
    assert rows(shop) == {}
    assert refused(shop, UsageError, str(start)).hint == error.hint
    assert [one.state for one in shop.states()] == ["used"]


def test_what_is_not_skipped_is_not_withdrawn(shop: SkippingShop) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')", "INSERT INTO shop.items VALUES (1)")
    other, _ = shop.transaction("INSERT INTO shop.orders VALUES (2,'a')")
    assert refused(shop, UsageError, str(start)).what == "no skip of this transaction is recorded"
    shop.skip(str(start))
    shop.skip(str(other), "shop.orders")
    error = refused(shop, UsageError, str(start), "shop.orders")
    assert (error.what, error.why) == (
        "no skip of shop.orders in this transaction is recorded",
        "what is skipped in it: the whole transaction",
    )
    assert f"loader skip {start} --withdraw --reason TEXT" in error.hint
    assert "shop.items" in refused(shop, UsageError, str(other), "shop.orders", "shop.items").what
    with pytest.raises(UsageError, match="a withdrawal needs a reason"):
        pipeline.withdraw_skip(shop.settings, str(start), (), reason=" ", by="bob")
    with pytest.raises(UsageError, match="does not name one transaction"):
        shop.withdraw("0-1-1,1-1-1")


@pytest.mark.parametrize("by", ["plan", "extraction"])
def test_a_plan_or_an_extraction_that_began_before_the_withdrawal_wins(
    shop: SkippingShop, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')")
    chosen = shop.planned() if by == "extraction" else None
    shop.skip(str(start))
    withdraw = Skips.withdraw

    def late(self: Any, withdrawal: Any) -> None:
        shop.extract(chosen) if chosen else shop.planned()
        withdraw(self, withdrawal)

    with monkeypatch.context() as patch, pytest.raises(DataError, match="cannot be withdrawn any more") as caught:
        patch.setattr(Skips, "withdraw", late)
        shop.withdraw(str(start))
    assert "loader initial-load --table shop.orders --again" in caught.value.hint
    (state,) = shop.states()
    assert state.state == ("used" if by == "extraction" else "waiting")
    assert "withdrawn too late" in state.why
    assert rows(shop) == {} if by == "plan" else True
    (state,) = shop.states()
    assert (state.state, state.why) == ("used", "it was withdrawn too late")
    assert state.applies_from == state.seqno


def test_a_withdrawn_skip_does_not_follow_the_source_to_another_server(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = begun(fresh_server("mysql"), tmp_path)
    replica = fresh_server("mysql", options_of_replica("mysql"))
    replicating(shop.server, replica)
    shop.run("INSERT INTO shop.orders VALUES (1,'a')")
    shop.delta()
    start, stop = shop.transaction("INSERT INTO shop.orders VALUES (2,'b')")
    shop.skip(str(start))
    shop.planned()
    refused(shop, UsageError, str(start))
    caught_up(shop.server, replica)
    there = SkippingShop(replica, shop.at(replica).settings)
    there.run("INSERT INTO shop.orders VALUES (3,'c')")
    there.planned()  # on the new server, no plan carries it
    (state,) = there.withdraw(shop.gtid(stop))
    assert state.state == "withdrawn"
    assert ids(there.staged(there.delta())["shop.orders"]) == [2, 3]


def test_a_damaged_withdrawal_is_named(shop: SkippingShop) -> None:
    start, _ = shop.transaction("INSERT INTO shop.orders VALUES (1,'a')")
    shop.skip(str(start))
    chain = chain_of(shop.settings)
    (key,) = Skips(chain.store, chain.source).all()
    chain.store.create(key.replace(".json", ".withdrawn.json"), b"{}")
    with pytest.raises(LoaderError, match="not a withdrawal document"):
        shop.states()
