"""Another server is followed by GTIDs, or by hand; one that does not continue the log is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Kind, Server
from loader import pipeline
from loader.errors import DataError, GapError, LoaderError, UsageError
from loader.materialise.plan.interval_chain import Chain
from loader.model.position import Position
from loader.pipeline import chain_of, plan_interval
from loader.pipeline.chain.failover import generation_transport
from loader.source.continuity import (
    AnotherServer,
    LogPurged,
    ServerRestored,
)
from loader.staging.chain import Superseded
from loader.staging.documents import Followed
from loader.store.registry import open_store
from tests.integration.pipeline.shops import (
    Shop,
    StartServer,
    begun,
    generation_start,
    pair,
    purge,
    refused,
    shop,
    sizes,
)
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, run, stop_replica

pytestmark = pytest.mark.integration
__all__ = ["pair", "shop"]  # fixtures


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_another_server_without_gtids_is_refused_and_followed_by_hand(
    kind: Kind, fresh_server: StartServer, tmp_path: Path
) -> None:
    if kind == "mariadb":
        pytest.skip("a MariaDB server always logs GTIDs")
    plain = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    shop = begun(fresh_server(kind, plain), tmp_path)
    shop.insert(1)
    old = shop.delta()
    assert old.gtids == ""
    other = fresh_server(kind, plain | {"server_id": "2"})
    run(other, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    there = shop.at(other)
    there.run("INSERT INTO shop.orders VALUES (1, 'x')")
    refused(there, AnotherServer, "without GTIDs the position in its log is unknown")
    with pytest.raises(AnotherServer) as caught:
        plan_interval(there.settings)
    assert "loader follow --at FILE:POS" in caught.value.hint
    position = Position.at(*list(sizes(other).items())[-1])
    with pytest.raises(DataError):
        pipeline.follow_to(there.settings, Position(position.basename, position.lognum, position.logpos - 7))
    generation = pipeline.follow_to(there.settings, position)
    assert generation.name == "0002" and generation.start == str(position)
    assert generation.follows == Followed(name="0001", stop_seqno=old.stop_seqno)
    assert pipeline.follow_to(there.settings, position) == generation  # a repeated request
    there.insert(2)
    assert there.delta().start_seqno > old.stop_seqno
    assert pipeline.follow_to(there.settings, position) == generation  # so nothing is read again
    assert plan_interval(there.settings) is not None


def test_a_server_whose_log_goes_on_is_not_followed_at_another_position(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """Without GTIDs nothing else tells that a part of the log is read twice, or left out."""
    plain = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    shop = begun(fresh_server("mysql", plain), tmp_path)
    begin = Position.at(*list(sizes(shop.server).items())[-1])
    shop.insert(1)
    assert shop.delta().gtids == ""
    shop.insert(2)
    for position in (begin, Position.at(*list(sizes(shop.server).items())[-1])):
        with pytest.raises(UsageError, match="its log goes on where reading stopped"):
            pipeline.follow_to(shop.settings, position)
    assert sum(file.rows for file in shop.delta().files) == 1
    shop.run("RESET BINARY LOGS AND GTIDS")
    shop.insert(3)
    pipeline.follow_to(shop.settings, Position.at(next(iter(sizes(shop.server))), 4))
    assert sum(file.rows for file in shop.delta().files) == 1


def test_a_server_without_gtids_is_followed_by_hand_from_one_with_them(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = begun(fresh_server("mysql"), tmp_path)
    shop.insert(1)
    assert shop.delta().gtids
    other = fresh_server("mysql", {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF", "server_id": "2"})
    run(other, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    there = shop.at(other)
    there.insert(1)
    generation = pipeline.follow_to(there.settings, Position.at(*list(sizes(other).items())[-1]))
    assert generation.gtids == ""
    for number in (2, 3):
        there.insert(number)
        assert sum(file.rows for file in there.delta().files) == 1


def test_a_promoted_replica_is_followed(pair: tuple[Shop, Server]) -> None:
    """In mid-interval: one is planned on the old server, and never extracted."""
    shop, replica = pair
    first = shop.delta()
    shop.insert(3, 4)
    abandoned = plan_interval(shop.settings)
    assert abandoned is not None and abandoned.start_seqno == first.stop_seqno
    caught_up(shop.server, replica)
    stop_replica(replica)
    shop.server.kill()
    there = shop.at(replica)
    there.insert(5)
    unfollowed = pipeline.status(there.settings)
    assert (unfollowed.behind, unfollowed.runway, unfollowed.staged) == (None, None, first.stop)
    second = there.delta()
    assert pipeline.status(there.settings).runway is not None
    assert (second.generation, second.identity.server_id) == ("0002", 2)
    assert sum(file.rows for file in second.files) == 3
    assert second.start_seqno > abandoned.stop_seqno
    chain = chain_of(there.settings)
    generation = chain.require_generation()
    assert generation.follows == Followed(name="0001", stop_seqno=first.stop_seqno)
    assert pipeline.begin(there.settings) == generation
    there.insert(6)
    third = there.delta()
    assert third.start == second.stop
    seen = Chain(open_store(there.settings.staging_root), "shop", "0002")
    every = [first.start_seqno, second.start_seqno, third.start_seqno]
    run_of = seen.covering_intervals(generation_start(chain, "0001"), third.stop_seqno)
    assert [one.start_seqno for one in run_of] == every
    # A zombie's extraction of the abandoned interval is of no account.
    old, new = f"/{first.start_seqno:020d}/", f"/{first.stop_seqno:020d}/"
    chain.publish(
        first.model_copy(
            update={
                "files": tuple(file.model_copy(update={"key": file.key.replace(old, new)}) for file in first.files),
                "start": first.stop,
                "start_seqno": first.stop_seqno,
                "stop": "binlog.000001:99999",
                "stop_seqno": 1000000099999,
            }
        )
    )
    again = Chain(open_store(there.settings.staging_root), "shop", "0002")
    assert [one.start_seqno for one in again.intervals_between(0, third.stop_seqno)] == every


@pytest.mark.parametrize("planned", [False, True], ids=["nothing planned", "planned and not staged"])
def test_a_second_promotion_before_anything_was_staged_since_the_first(
    pair: tuple[Shop, Server], fresh_server: StartServer, planned: bool
) -> None:
    shop, second = pair
    third = fresh_server(second.kind, options_of_replica(second.kind) | {"server_id": "3"})
    replicating(second, third)
    first = shop.delta()
    caught_up(shop.server, second)
    stop_replica(second)
    shop.server.kill()
    between = shop.at(second)
    if planned:
        between.insert(3)
    chosen = plan_interval(between.settings)
    assert chosen is not None and chosen.generation == ("0002" if planned else "0001")
    assert chain_of(between.settings).require_generation().name == "0002"
    caught_up(second, third)
    stop_replica(third)
    second.kill()
    there = shop.at(third)
    there.insert(4)
    last = there.delta()
    assert (last.generation, sum(file.rows for file in last.files)) == ("0003", 2 if planned else 1)
    chain = chain_of(there.settings)
    empty = chain.require_generation("0002").start_position.seqno(chain.require_generation("0002").shift)
    assert chain.require_generation().follows == Followed(name="0002", stop_seqno=empty)
    seen = Chain(open_store(there.settings.staging_root), "shop", "0003")
    for applied in (generation_start(chain, "0001"), first.stop_seqno, empty):
        run_of = [one.start_seqno for one in seen.covering_intervals(applied, last.stop_seqno)]
        assert run_of == ([first.start_seqno] if applied < first.stop_seqno else []) + [last.start_seqno]
    states = [(one.generation, one.state) for one in pipeline.intervals(there.settings)]
    assert states == [("0001", "staged"), *([("0002", "superseded")] if planned else []), ("0003", "staged")]


def test_tagged_gtids_are_not_taken_for_purged_ones(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mysql"), tmp_path)
    replica = fresh_server("mysql", options_of_replica("mysql"))
    replicating(shop.server, replica)
    shop.run("SET gtid_next = 'AUTOMATIC:blue'", "INSERT INTO shop.orders VALUES (1, 'x')")
    assert ":blue:1" in shop.delta().gtids
    caught_up(shop.server, replica)
    stop_replica(replica)
    there = shop.at(replica)
    position = Position.at(*list(sizes(replica).items())[-1])
    there.insert(2)
    refused(there, AnotherServer, "the position in its log is unknown")
    pipeline.follow_to(there.settings, position)
    assert sum(file.rows for file in there.delta().files) == 1
    there.insert(3)
    assert sum(file.rows for file in there.delta().files) == 1


def test_a_replica_that_is_behind_is_refused_until_it_is_not(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    caught_up(shop.server, replica)
    stop_replica(replica)
    shop.insert(3)
    shop.delta()
    there = shop.at(replica)
    refused(there, ServerRestored, "lacks transactions that were read from it")
    run(replica, "START REPLICA" if replica.kind == "mysql" else "START SLAVE")
    caught_up(shop.server, replica)
    stop_replica(replica)
    nothing_new = plan_interval(there.settings)
    assert nothing_new is not None and (nothing_new.generation, nothing_new.new) == ("0001", False)
    there.insert(4)
    assert sum(file.rows for file in there.delta().files) == 1


def test_a_replica_that_has_purged_what_was_not_read_is_refused(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    shop.delta()
    shop.insert(3)
    caught_up(shop.server, replica)
    stop_replica(replica)
    run(replica, "FLUSH BINARY LOGS", "INSERT INTO shop.orders VALUES (9, 'x')")
    purge(replica, list(sizes(replica))[-1])
    refused(shop.at(replica), LogPurged, "purged transactions from its log before they were read")


@pytest.mark.parametrize("pair", ["mysql"], indirect=True)
def test_a_replica_whose_gtids_are_not_on_is_followed_by_hand(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    shop.delta()
    caught_up(shop.server, replica)
    stop_replica(replica)
    there = shop.at(replica)
    run(replica, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE")
    refused(there, AnotherServer, "without GTIDs the position in its log is unknown")
    pipeline.follow_to(there.settings, Position.at(*list(sizes(replica).items())[-1]))
    there.insert(3)
    assert sum(file.rows for file in there.delta().files) == 1


def test_a_position_given_by_hand_must_not_skip_transactions(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    shop.delta()
    shop.insert(3)
    caught_up(shop.server, replica)
    stop_replica(replica)
    there = shop.at(replica)
    position = Position.at(*list(sizes(replica).items())[-1])
    with pytest.raises(UsageError, match="the position is after transactions that were not read yet"):
        pipeline.follow_to(there.settings, position)


def test_an_interval_of_another_server_is_not_extracted(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    shop.delta()
    shop.insert(3)
    chosen = plan_interval(shop.settings)
    assert chosen is not None
    with pytest.raises(LoaderError) as caught:
        shop.at(replica).extract(chosen)
    assert isinstance(caught.value, DataError)
    transport = generation_transport(shop.settings, chain_of(shop.settings).require_generation())
    with (
        pytest.raises(GapError, match="another server has the address of the source now"),
        transport.model_copy(update={"server": address_of(replica)}).open().open("binlog.000001", 4, 200),
    ):
        pass
    assert shop.extract(chosen).files


def test_a_run_that_goes_on_while_another_server_is_followed_stops(pair: tuple[Shop, Server]) -> None:
    shop, replica = pair
    first = shop.delta()
    shop.insert(3, 4)
    chosen = plan_interval(shop.settings, "dag/1")
    assert chosen is not None
    caught_up(shop.server, replica)
    stop_replica(replica)
    there = shop.at(replica)
    second = there.delta()
    assert (second.generation, sum(file.rows for file in second.files)) == ("0002", 2)
    again = plan_interval(there.settings, "dag/1")
    assert again is not None and (again.generation, again.start_seqno) == ("0002", second.start_seqno)
    for _ in range(2):
        with pytest.raises(Superseded, match="the interval is superseded"):
            shop.extract(chosen)
    chain = chain_of(there.settings)
    assert chain.manifest("0001", chosen.start_seqno) is None
    chain.check_not_superseded("0001", first.stop_seqno)
    chain.check_not_superseded("0002", second.stop_seqno)
    with pytest.raises(Superseded):
        chain.check_not_superseded("0001", chosen.stop_seqno)
