"""The source's server dies in mid-interval, and its replica is promoted: the delta goes on there without a hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from infra.servers import Server, start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.replicas import caught_up, options_of_replica, replicating, stop_replica

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif("LOADER_SWEEP" not in os.environ, reason="two minutes for each kind of server: make sweep"),
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
    abandoned = shop.json("position")
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
