"""Transactions without a GTID after others with a GTID: `gtid_mode` was switched off and on again."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import UsageError
from loader.model.position import Position
from loader.pipeline import plan_adoption
from loader.source.continuity import AnotherServer
from loader.transport.base import AnonymousRefused
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.test_other_order import MADE, begun, gtids, insert, logged, rows, servers
from tests.integration.pipeline.shops import Shop, StartServer, refused, sizes
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration

_OFF = ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
_ON = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")


def switch(server: Server, steps: tuple[str, ...]) -> None:
    run(server, *(f"SET GLOBAL gtid_mode = {step}" for step in steps))


def without_gtid(server: Server, *statements: str) -> Position:
    """Run statements while `gtid_mode` is OFF. Return the end of the log before them."""
    switch(server, _OFF)
    before = Position.at(*list(sizes(server).items())[-1])
    run(server, *statements)
    switch(server, _ON)
    return before


def unsent(shop: Shop, wanted: list[int]) -> None:
    """The server does not send the transactions without a GTID at first."""
    with pytest.raises(AnonymousRefused, match="the server does not send transactions without a GTID") as caught:
        shop.delta()
    assert "SET GLOBAL gtid_mode = ON_PERMISSIVE" in caught.value.hint
    switch(shop.server, ("ON_PERMISSIVE",))
    assert rows(shop, shop.delta()) == wanted
    switch(shop.server, ("ON",))


@pytest.mark.parametrize("later", [True, False], ids=["a later transaction", "none"])
def test_a_server_with_unread_transactions_without_a_gtid(
    later: bool, fresh_server: StartServer, tmp_path: Path
) -> None:
    """The first transaction outside the set that was read comes after them, in another file."""
    old, new = servers(fresh_server, "mysql")
    made = list(zip(gtids("mysql", 1, 2, 3), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    fourth, fifth = gtids("mysql", 4, 5)
    logged(old, (fourth, insert(1)))
    assert rows(shop, shop.delta()) == [1]
    logged(new, *made, (fourth, insert(1)))
    before = without_gtid(new, insert(2))
    if later:
        logged(new, (fifth, insert(3)))
    there = shop.at(new)
    refused(there, AnotherServer, "without GTIDs the position in its log is unknown")
    with pytest.raises(AnotherServer, match="has no GTID") as caught:
        pipeline.plan_interval(there.settings)
    assert "loader follow --at FILE:POS" in caught.value.hint
    pipeline.follow_to(there.settings, before)
    unsent(there, [2, 3] if later else [2])
    run(new, insert(4))
    assert rows(there, there.delta()) == [4]


def test_a_server_with_others_without_a_gtid_in_the_same_file(fresh_server: StartServer, tmp_path: Path) -> None:
    """The server refuses to search there. Nothing was purged."""
    old, new = servers(fresh_server, "mysql")
    made = list(zip(gtids("mysql", 1, 2, 3), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    fourth, fifth = gtids("mysql", 4, 5)
    logged(old, (fourth, insert(1)))
    assert rows(shop, shop.delta()) == [1]
    logged(new, *made, (fourth, insert(1)))
    switch(new, ("ON_PERMISSIVE",))
    logged(new, ("ANONYMOUS", insert(2)), (fifth, insert(3)))
    switch(new, ("ON",))
    there = shop.at(new)
    refused(there, AnotherServer, "without GTIDs the position in its log is unknown")


def test_a_server_with_earlier_transactions_without_a_gtid(fresh_server: StartServer, tmp_path: Path) -> None:
    """GTIDs were switched on: all transactions without a GTID come before one that was read."""
    old, new = servers(fresh_server, "mysql")
    made = list(zip(gtids("mysql", 1, 2, 3), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    fourth, fifth = gtids("mysql", 4, 5)
    without_gtid(old, insert(1))
    unsent(shop, [1])
    logged(old, (fourth, insert(2)))
    assert rows(shop, shop.delta()) == [2]
    logged(new, *made)
    without_gtid(new, insert(1))
    logged(new, (fourth, insert(2)))
    run(new, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    logged(new, (fifth, insert(3)))
    there = shop.at(new)
    assert rows(there, there.delta()) == [3]


def test_gtids_that_are_switched_on_do_not_make_another_log(fresh_server: StartServer, tmp_path: Path) -> None:
    """The server does not send the last transaction that was read, by which the loader knows its log."""
    server = fresh_server("mysql", {"gtid_mode": "OFF", "enforce_gtid_consistency": "ON"})
    run(server, *MADE)
    shop = begun(server, tmp_path, [])
    run(server, insert(1))
    assert rows(shop, shop.delta()) == [1]
    switch(server, _ON)
    run(server, insert(2))
    refused(shop, AnonymousRefused, "the server does not send transactions without a GTID")
    switch(server, ("ON_PERMISSIVE",))
    assert rows(shop, shop.delta()) == [2]
    switch(server, ("ON",))
    run(server, insert(3))
    assert rows(shop, shop.delta()) == [3]


def test_a_chain_does_not_begin_after_transactions_without_a_gtid(fresh_server: StartServer, tmp_path: Path) -> None:
    server, _ = servers(fresh_server, "mysql")
    logged(server, *zip(gtids("mysql", 1, 2, 3), MADE, strict=True))
    (fourth,) = gtids("mysql", 4)
    before = without_gtid(server, insert(1))
    logged(server, (fourth, insert(2)))
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    read = f"{fourth[:-2]}:1-3"
    with pytest.raises(UsageError, match="transactions without a GTID") as caught:
        pipeline.begin_at(shop.settings, read)
    assert "has no GTID" in caught.value.why
    with pytest.raises(UsageError, match="transactions without a GTID"):
        plan_adoption(shop.settings, ("shop.k",), read)
    switch(server, ("ON_PERMISSIVE",))
    pipeline.begin_at(shop.settings, str(before))
    assert rows(shop, shop.delta()) == [1, 2]
