"""A log that is not what was read is refused, each way by an error of its own, and another server followed by GTIDs."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from infra.servers import Kind, Server
from infra.servers.process import wait_until
from loader import pipeline
from loader.errors import DataError, GapError, LoaderError, UsageError
from loader.extract.extraction import extract
from loader.extract.spec import TransportSettings
from loader.extract.workers import Threads
from loader.materialise.plan.interval_chain import Chain
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline import IntervalChosen, chain_of, plan_interval
from loader.pipeline.failover import generation_transport
from loader.settings import SourceSettings
from loader.source.continuity import (
    AnotherServer,
    LogPurged,
    LogReplaced,
    LogReset,
    LogShortened,
    ServerRestored,
)
from loader.staging.chain import Superseded
from loader.staging.documents import Followed, Generation, Manifest
from loader.store.registry import open_store
from loader.transport.server.connection import connected, log_sizes
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, run, stop_replica

pytestmark = pytest.mark.integration

StartServer = Callable[..., Server]


@dataclass
class Shop:
    """A server with one table, and the settings of a source on it."""

    server: Server
    settings: SourceSettings

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        return run(self.server, *statements)

    def insert(self, *numbers: int) -> None:
        self.run(*(f"INSERT INTO shop.orders VALUES ({number}, 'x')" for number in numbers))

    def delta(self) -> Manifest:
        """Plan the next interval and extract it."""
        chosen = plan_interval(self.settings)
        assert chosen is not None
        return self.extract(chosen)

    def extract(self, chosen: IntervalChosen) -> Manifest:
        job = pipeline.extract_job(self.settings, chosen.start_seqno)
        extract(Threads(2), cast("Any", job.spec))
        found = chain_of(self.settings).manifest(chosen.generation, chosen.start_seqno)
        assert found is not None
        return found

    def at(self, server: Server) -> Shop:
        """The same source, pointed at another server."""
        address = address_of(server)
        transport = TransportSettings(kind="network", server=address)
        return Shop(server, self.settings.model_copy(update={"server": address, "transport": transport}))


def sizes(server: Server) -> dict[str, int]:
    with connected(address_of(server)) as connection:
        return log_sizes(connection)


def purge(server: Server, upto: str) -> None:
    """Purge the files before that one; MariaDB keeps them until InnoDB has no need of them."""

    def purged() -> bool:
        run(server, f"PURGE BINARY LOGS TO '{upto}'")
        return next(iter(sizes(server))) == upto

    assert wait_until(purged, 60)


def begun(server: Server, folder: Path) -> Shop:
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    settings = settings_of(address_of(server), "shop.*", folder)
    pipeline.begin(settings)
    return Shop(server, settings)


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> Iterator[Shop]:
    made = begun(fresh_server(request.param), tmp_path)
    made.insert(1, 2)
    made.delta()
    yield made


def refused(shop: Shop, kind: type[LoaderError], says: str) -> None:
    """Twice the same error, and nothing is planned."""
    chain = chain_of(shop.settings)
    for _ in range(2):
        with pytest.raises(kind, match=says) as caught:
            plan_interval(shop.settings)
        assert type(caught.value) is kind
        assert caught.value.hint
        assert chain.unfinished(chain.require_generation().name) == []


def reset(shop: Shop) -> None:
    shop.run("RESET BINARY LOGS AND GTIDS" if shop.server.kind == "mysql" else "RESET MASTER")


def test_gtids_and_marks_go_from_interval_to_interval(shop: Shop) -> None:
    chain = chain_of(shop.settings)
    generation = chain.require_generation()
    variable = "gtid_executed" if shop.server.kind == "mysql" else "gtid_binlog_pos"
    for number in (3, 4):
        shop.insert(number)
        manifest = shop.delta()
        assert manifest.gtids == shop.run(f"SELECT @@global.{variable}")[0][0].replace("\n", "")
        assert manifest.mark and manifest.mark.last and manifest.mark.log == cast("Any", generation.mark).log
    shop.run("FLUSH BINARY LOGS")
    manifest = shop.delta()
    assert manifest.mark and manifest.mark.last == 0
    shop.insert(5)
    assert shop.delta().gtids == shop.run(f"SELECT @@global.{variable}")[0][0].replace("\n", "")


def test_a_reset_log(shop: Shop) -> None:
    shop.run("FLUSH BINARY LOGS")
    shop.insert(3)
    shop.delta()
    reset(shop)
    shop.insert(4)
    refused(shop, LogReset, "the log ends before the position where reading continues")


def test_a_reset_log_that_was_filled_past_the_position(shop: Shop) -> None:
    before = sizes(shop.server)
    reset(shop)
    shop.insert(*range(10, 30))
    assert all(sizes(shop.server)[file] > size for file, size in before.items())
    refused(shop, LogReplaced, "the log file was replaced by another one of the same name")


def test_a_file_of_the_same_name_with_another_content(shop: Shop, tmp_path: Path) -> None:
    """The GTIDs go on, the files are others: as after a restore without them."""
    shop.insert(3)
    log = shop.server.log_dir / next(iter(sizes(shop.server)))
    shop.server.stop()
    changed = bytearray(log.read_bytes())
    changed[4] ^= 1  # a second earlier or later
    end = 4 + int.from_bytes(changed[13:17], "little")
    changed[end - 4 : end] = zlib.crc32(changed[4 : end - 4]).to_bytes(4, "little")
    log.write_bytes(changed)
    shop.server.start()
    refused(shop, LogReplaced, "the log file was replaced by another one of the same name")


def test_a_restored_server(shop: Shop, tmp_path: Path) -> None:
    """A copy of the data folder from before the last transactions that were read."""
    shop.server.stop()
    shutil.copytree(shop.server.data_dir, tmp_path / "backup", symlinks=True)
    shop.server.start()
    shop.insert(3, 4)
    shop.delta()
    shop.server.stop()
    shutil.rmtree(shop.server.data_dir)
    shutil.copytree(tmp_path / "backup", shop.server.data_dir, symlinks=True)
    shop.server.start()
    with pytest.raises((LogShortened, LogReset, ServerRestored, LogReplaced)):
        plan_interval(shop.settings)
    shop.insert(*range(10, 30))
    with pytest.raises((ServerRestored, LogReplaced)):
        plan_interval(shop.settings)


def test_a_log_that_lost_its_end(shop: Shop) -> None:
    log = shop.server.log_dir / next(iter(sizes(shop.server)))
    shop.server.stop()
    log.write_bytes(log.read_bytes()[:-200])
    shop.server.start()
    with pytest.raises((LogShortened, ServerRestored)):
        plan_interval(shop.settings)


def test_purged_files(shop: Shop) -> None:
    newest = ""
    for number in (3, 4):
        shop.insert(number)
        shop.run("FLUSH BINARY LOGS")
        newest = list(sizes(shop.server))[-1]
    position = chain_of(shop.settings).newest_checkpoint(chain_of(shop.settings).require_generation()).position
    purge(shop.server, newest)
    refused(shop, LogPurged, "the server purged a log file that is still needed")
    with pytest.raises(LogPurged) as caught:
        plan_interval(shop.settings)
    assert f"[{position}, {newest}:4)" in caught.value.why


def test_a_log_that_is_called_otherwise(shop: Shop) -> None:
    """It begins anew, and is followed if everything before it was read, where the server still knows its GTIDs."""
    shop.insert(3)
    shop.server.restart({"log_bin": "other"})
    shop.insert(4)
    if shop.server.kind == "mariadb":  # which keeps what GTIDs were logged in a file beside the log
        refused(shop, ServerRestored, "lacks transactions that were read from it")
    else:
        refused(shop, LogPurged, "purged transactions from its log before they were read")
    # Under its old name again: what was logged under the other one is nowhere. MariaDB does not know of it any more.
    shop.server.restart({"log_bin": "binlog"})
    if shop.server.kind == "mysql":
        refused(shop, LogPurged, "purged transactions from its log before they were read")


@pytest.mark.parametrize("index", [{}, {"log_bin_index": "binlog.index"}], ids=["another index", "the same index"])
def test_a_log_that_is_called_otherwise_is_followed_once_all_was_read(shop: Shop, index: dict[str, str]) -> None:
    if shop.server.kind == "mariadb":
        pytest.skip("a new log of MariaDB does not know the GTIDs of the one before")
    shop.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")  # the old name has the higher numbers
    shop.server.restart({"log_bin": "other"} | index)
    for number in (5, 6):
        shop.insert(number)
        found = shop.delta()
        assert (found.generation, sum(file.rows for file in found.files)) == ("0002", 1)
        assert found.start.startswith("other.")


def test_a_domain_that_the_server_forgot(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path)
    shop.run("SET SESSION gtid_domain_id = 5", "INSERT INTO shop.orders VALUES (1, 'x')")
    shop.insert(2)
    assert "5-1-1" in shop.delta().gtids
    shop.run("FLUSH BINARY LOGS")
    shop.insert(3)
    shop.delta()
    purge(shop.server, list(sizes(shop.server))[-1])
    shop.run("FLUSH BINARY LOGS DELETE_DOMAIN_ID = (5)")
    for number in (4, 5):
        shop.insert(number)
        assert sum(file.rows for file in shop.delta().files) == 1


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
    assert "loader follow --source shop --at FILE:POS" in caught.value.hint
    position = Position.at(*list(sizes(other).items())[-1])
    with pytest.raises(DataError):
        pipeline.follow_to(there.settings, Position(position.basename, position.lognum, position.logpos - 7))
    generation = pipeline.follow_to(there.settings, position)
    assert generation.name == "0002" and generation.start == str(position)
    assert generation.follows == Followed(name="0001", stop_seqno=old.stop_seqno)
    there.insert(2)
    assert there.delta().start_seqno > old.stop_seqno
    assert plan_interval(there.settings) is not None


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


@pytest.fixture(params=["mysql", "mariadb"])
def pair(request: pytest.FixtureRequest, fresh_server: StartServer, tmp_path: Path) -> tuple[Shop, Server]:
    """A shop, and a replica that writes a log of its own, with other offsets."""
    shop = begun(fresh_server(request.param), tmp_path)
    replica = fresh_server(request.param, options_of_replica(request.param))
    replicating(shop.server, replica)
    shop.insert(1, 2)
    return shop, replica


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
    assert (chosen is not None) is planned
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


def generation_start(chain: Any, name: str) -> int:
    generation: Generation = chain.require_generation(name)
    return generation.start_position.seqno(generation.shift)


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
    assert plan_interval(there.settings) is None
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


def test_the_status_of_a_server_that_is_down_or_was_reset_says_what_is_staged(shop: Shop) -> None:
    shop.insert(3, 4)
    last = shop.delta()
    known = pipeline.status(shop.settings)
    assert known.behind is not None and known.behind >= 0
    reset(shop)
    found = pipeline.status(shop.settings)
    assert (found.staged, found.behind, found.runway, found.unreachable) == (last.stop, None, None, None)
    shop.server.kill()
    found = pipeline.status(shop.settings)
    assert (found.staged, found.planned, found.log_end, found.behind) == (last.stop, last.stop, "", None)
    assert found.unreachable is not None and found.unreachable["exit_code"] == 3


def test_all_tables_can_be_loaded_again_where_the_log_does_not_go_on(shop: Shop) -> None:
    old = chain_of(shop.settings).require_generation()
    stop = chain_of(shop.settings).newest_checkpoint(old).position.seqno(old.shift)
    reset(shop)
    shop.insert(3)
    with pytest.raises(GapError):
        plan_interval(shop.settings)
    found = pipeline.begin_again(shop.settings)
    assert (found.name, found.follows) == ("0002", Followed(name="0001", stop_seqno=stop))
    assert found.gap
    assert pipeline.begin_again(shop.settings) == found
    shop.insert(4)
    manifest = shop.delta()
    assert (manifest.generation, sum(file.rows for file in manifest.files)) == ("0002", 1)
    chain = Chain(open_store(shop.settings.staging_root), "shop", "0002")
    table = TableName("shop", "orders")
    with pytest.raises(GapError, match="was not loaded again") as caught:
        chain.check_joined(table, stop)
    assert caught.value.why == found.gap
    chain.check_joined(table, found.start_position.seqno(found.shift))


def test_intervals_that_cannot_be_staged_are_given_up_by_loading_all_again(shop: Shop) -> None:
    shop.insert(3)
    planned = plan_interval(shop.settings)
    assert planned is not None
    shop.run("FLUSH BINARY LOGS")
    shop.run("FLUSH BINARY LOGS")
    purge(shop.server, list(sizes(shop.server))[-1])
    for _ in range(2):
        with pytest.raises(LoaderError):
            shop.extract(planned)
    found = pipeline.begin_again(shop.settings)
    assert planned.start in found.gap or "purged" in found.gap
    shop.insert(5)
    manifest = shop.delta()
    assert (manifest.generation, sum(file.rows for file in manifest.files)) == ("0002", 1)
