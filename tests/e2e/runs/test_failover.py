"""The source's server dies in mid-interval, and its replica is promoted: the delta goes on there without a hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Server, start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.replicas import caught_up, options_of_replica, replicating, stop_replica

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]


@pytest.fixture(params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, jars: str) -> Iterator[tuple[Loaded, Server]]:
    """A loaded shop, and a replica of its server."""
    with ExitStack() as cleanup:
        first, second = (
            start_server(request.param, tmp_path / name, options)
            for name, options in (("first", {}), ("second", options_of_replica(request.param)))
        )
        for server in (first, second):
            cleanup.callback(server.kill)
        shop = Loaded(first, tmp_path / "loader", jars)
        shop.configure()
        replicating(first, second)
        create_shop(shop.address, 1000)
        shop.create_user()
        shop.json("initial-load")
        yield shop, second


@pytest.mark.timeout(600)
def test_a_promoted_replica_is_followed(pair: tuple[Loaded, Server]) -> None:
    """What the dead server wrote last never reached its replica: planned there, it is not asked for any more."""
    shop, replica = pair
    shop.execute(*changes(1))
    old = shop.json("run")["intervals"][0]
    shop.execute(*changes(2))
    caught_up(shop.server, replica)
    stop_replica(replica)
    shop.execute(*changes(3))
    abandoned = shop.json("plan")
    assert (abandoned["new"], abandoned["start"]) == (True, old["stop"])
    shop.server.kill()

    shop.server = replica
    shop.configure()
    shop.execute(*changes(4))
    followed = shop.json("run")
    (interval,) = followed["intervals"]
    assert interval["generation"] == "0002"
    assert interval["start_seqno"] > abandoned["stop_seqno"]
    assert [one["status"] for one in followed["extracts"]] == ["staged"]
    _twice(shop)

    shop.execute(*changes(5))
    following = shop.json("run")["intervals"]
    assert [one["start"] for one in following] == [interval["stop"]]
    assert shop.differences() == NOTHING_DIFFERS
    assert [(one["generation"], one["state"], one["start_seqno"]) for one in shop.json("intervals")] == [
        ("0001", "applied", old["start_seqno"]),
        ("0001", "superseded", abandoned["start_seqno"]),
        ("0002", "applied", interval["start_seqno"]),
        ("0002", "applied", following[0]["start_seqno"]),
    ]
    _standing(shop, following[0]["stop_seqno"])
    for place in ("begin", old["start"], interval["start"]):
        replayed = shop.json("replay", "--from", place)
        assert {table["status"] for table in replayed["tables"]} == {"same"}
        assert replayed["since_seqno"] == (interval if place == interval["start"] else old)["start_seqno"]
    replayed = shop.json("replay", "--from", "begin", "--to", interval["stop"], "--table", "shop.orders")
    assert (replayed["until_seqno"], replayed["tables"][0]["status"]) == (interval["stop_seqno"], "same")


@pytest.fixture(params=["mysql", "mariadb"])
def three(request: pytest.FixtureRequest, tmp_path: Path, jars: str) -> Iterator[tuple[Loaded, Server, Server]]:
    """A loaded shop, a replica of its server, and a replica of that."""
    with ExitStack() as cleanup:
        options = options_of_replica(request.param)
        servers = []
        for place, found in enumerate(({}, options, options | {"server_id": "3"})):
            servers.append(start_server(request.param, tmp_path / f"server{place}", found))
            cleanup.callback(servers[-1].kill)
        first, second, third = servers
        shop = Loaded(first, tmp_path / "loader", jars)
        shop.configure()
        replicating(first, second)
        replicating(second, third)
        create_shop(shop.address, 1000)
        shop.create_user()
        shop.json("initial-load")
        yield shop, second, third


@pytest.mark.timeout(900)
def test_two_promotions_with_nothing_staged_between(three: tuple[Loaded, Server, Server]) -> None:
    """One table is quarantined meanwhile: it catches up over all three logs."""
    shop, second, third = three
    shop.execute(*changes(1))
    shop.json("run")
    shop.execute(*changes(2))
    shop.json("plan")
    shop.json("extract")
    lost = max((shop.home / "staging").glob("shop/0001/0*/*/shop/reviews/*/part-*.csv"))  # of the newest interval
    lost.rename(kept := lost.with_suffix(".kept"))
    assert _stopped(shop.json("materialise", code=4)) == ["shop.reviews"]
    for old, new in ((shop.server, second), (second, third)):
        caught_up(old, new)
        stop_replica(new)
        old.kill()
        shop.server = new
        shop.configure()
        if new is second:
            assert shop.json("plan")["generation"] == "0001"

    shop.execute(*changes(3))
    followed = shop.json("run", code=4)
    assert [one["generation"] for one in followed["intervals"]] == ["0003"]
    assert _stopped(followed["materialise"]) == ["shop.reviews"]
    assert shop.json("intervals")[-1]["generation"] == "0003"

    kept.rename(lost)
    shop.json("release", "shop.reviews")
    shop.execute(*changes(4))
    assert _stopped(shop.json("run")["materialise"]) == []
    assert shop.differences() == NOTHING_DIFFERS
    _twice(shop)


def _stopped(result: dict[str, Any]) -> list[str]:
    """The tables that are quarantined; no other one may have failed."""
    assert {table["status"] for table in result["tables"]} <= {"applied", "unchanged", "already", "quarantined"}
    return [table["table"] for table in result["tables"] if table["status"] == "quarantined"]


def _twice(shop: Loaded) -> None:
    """Every stage again changes nothing."""
    staged, snapshots = shop.staged(), shop.snapshots()
    quiet = shop.json("run")
    assert [one["status"] for one in quiet["extracts"]] == ["already"]
    assert {table["status"] for table in quiet["materialise"]["tables"]} <= {"already", "unchanged"}
    assert {table["status"] for table in shop.json("initial-load")["tables"]} == {"already"}
    assert (shop.staged(), shop.snapshots()) == (staged, snapshots)


def _standing(shop: Loaded, seqno: int) -> None:
    """Nothing is behind, and every table is exact."""
    found = shop.json("status")
    assert found["planned"] == found["staged"] == found["applied"] == found["log_end"]
    assert found["behind"] == 0
    assert {table["table"]: table["exact"] for table in found["tables"]} == dict.fromkeys(NOTHING_DIFFERS, True)
    assert max(table["applied_seqno"] for table in found["tables"]) == seqno
