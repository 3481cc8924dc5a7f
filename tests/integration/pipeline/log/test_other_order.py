"""A promoted server whose log has transactions in another order than the one that was read before, or some of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from infra.servers import Server
from loader import pipeline
from loader.errors import UsageError
from loader.extract.gtids.skipped_transactions import READ_BEFORE, SKIPPED
from loader.pipeline import chain_of, plan_interval
from loader.source.continuity import Errant
from loader.staging.documents import Manifest
from loader.store.registry import open_store
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop
from tests.support.replicas import address_of, options_of_replica, run
from tests.unit.binlog.reading import fields, records

pytestmark = pytest.mark.integration

StartServer = Callable[..., Server]
OLD = "aaaaaaaa-0000-0000-0000-000000000001"
ERRANT = "eeeeeeee-0000-0000-0000-000000000009"
MADE = ("CREATE DATABASE shop", "CREATE TABLE shop.k (id INT)", "CREATE TABLE shop.other (id INT)")


def logged(server: Server, *transactions: tuple[str, str]) -> None:
    """Run each statement as the transaction of that GTID, as a replica does."""
    for gtid, statement in transactions:
        if server.kind == "mysql":
            run(server, f"SET gtid_next = '{gtid}'", statement, "SET gtid_next = AUTOMATIC")
        else:
            domain, number, sequence = gtid.split("-")
            run(
                server,
                f"SET SESSION gtid_domain_id = {domain}, SESSION server_id = {number}, SESSION gtid_seq_no = {sequence}",
                statement,
            )


def insert(*numbers: int) -> str:
    return "INSERT INTO shop.k VALUES " + ",".join(f"({number})" for number in numbers)


def begun(server: Server, folder: Path, made: list[tuple[str, str]]) -> Shop:
    logged(server, *made)
    settings = settings_of(address_of(server), "shop.*", folder)
    pipeline.begin(settings)
    return Shop(server, settings)


def rows(shop: Shop, manifest: Manifest) -> list[int]:
    store = open_store(shop.settings.staging_root)
    lines = [fields(line) for file in manifest.files for line in records(store.get(file.key))]
    return [int(line[5] or 0) for line in sorted(lines, key=lambda line: int(line[1] or 0))]


def servers(start: StartServer, kind: str) -> tuple[Server, Server]:
    options = {"gtid_strict_mode": "OFF"} if kind == "mariadb" else {}
    old, new = start(kind, options), start(kind, options_of_replica(kind) | options)
    for server in (old, new):
        run(server, "RESET BINARY LOGS AND GTIDS" if kind == "mysql" else "RESET MASTER")
    return old, new


def gtids(kind: str, *numbers: int) -> list[str]:
    return [f"{OLD}:{number}" if kind == "mysql" else f"0-1-{number}" for number in numbers]


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_what_was_read_before_is_not_staged_again(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    """MySQL: appliers that do not keep the order. MariaDB: another replication domain."""
    old, new = servers(fresh_server, kind)
    made = list(zip(gtids(kind, 1, 2, 3), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    early, late = (f"{OLD}:4", f"{OLD}:5") if kind == "mysql" else ("1-1-1", "0-1-4")
    logged(old, (early, insert(1)))
    first = shop.delta()
    assert rows(shop, first) == [1]
    logged(old, (late, insert(2)))
    logged(new, *made, (late, insert(2)), (early, insert(1)))
    run(new, insert(3))
    there = shop.at(new)
    second = there.delta()
    assert (second.generation, rows(there, second)) == ("0002", [2, 3])
    assert second.balance is not None and second.balance.skipped[SKIPPED[READ_BEFORE]] == 1
    run(new, insert(4))
    third = there.delta()
    assert rows(there, third) == [4]
    assert SKIPPED[READ_BEFORE] not in third.balance.skipped
    chain = chain_of(there.settings)
    assert chain.require_plan("0002", second.start_seqno).read_before
    assert not chain.require_plan("0002", third.start_seqno).read_before


@pytest.mark.parametrize("decided", [False, True], ids=["prepared and read", "committed and read"])
def test_a_prepared_transaction_counts_once(decided: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    old, new = servers(fresh_server, "mysql")
    made = list(zip(gtids("mysql", 1, 2, 3), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    prepare = f"SET gtid_next = '{OLD}:4'", "XA START 'x'", insert(1), "XA END 'x'", "XA PREPARE 'x'"
    commit = f"SET gtid_next = '{OLD}:5'", "XA COMMIT 'x'", "SET gtid_next = AUTOMATIC"
    run(old, *prepare)
    if decided:
        run(old, *commit)
    assert rows(shop, shop.delta()) == ([1] if decided else [])
    logged(old, (f"{OLD}:6", insert(2)))
    logged(new, *made, (f"{OLD}:6", insert(2)))
    run(new, *prepare)
    run(new, *commit)
    assert rows(shop.at(new), shop.at(new).delta()) == ([2] if decided else [2, 1])


def test_transactions_that_only_the_new_server_has_are_accepted_on_record(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    old, new = servers(fresh_server, "mysql")
    made = list(zip(gtids("mysql", 1, 2, 3), MADE, strict=True))
    shop = begun(old, tmp_path, made)
    logged(old, (f"{OLD}:4", insert(1)))
    shop.delta()
    logged(old, (f"{OLD}:5", insert(2)))
    logged(new, *made, (f"{ERRANT}:1", "INSERT INTO shop.other VALUES (9)"))
    logged(new, (f"{OLD}:4", insert(1)), (f"{OLD}:5", insert(2)))
    run(new, insert(3))
    there = shop.at(new)
    for _ in range(2):
        with pytest.raises(Errant, match="errant transactions") as caught:
            plan_interval(there.settings)
    assert f"{ERRANT}:1" in caught.value.why
    assert f"loader follow --accept {ERRANT}:1" in caught.value.hint
    with pytest.raises(UsageError, match="not on this server"):
        pipeline.follow_accepting(there.settings, f"{ERRANT}:7")
    uuid = run(new, "SELECT @@server_uuid")[0][0]
    with pytest.raises(UsageError, match=f"transactions {uuid}:1 are not errant"):
        pipeline.follow_accepting(there.settings, f"{ERRANT}:1,{uuid}:1")
    generation = pipeline.follow_accepting(there.settings, f"{ERRANT}:1")
    assert generation.accepted == f"{ERRANT}:1"
    found = there.delta()
    assert rows(there, found) == [2, 3]
    with pytest.raises(UsageError, match="is already read from this server"):
        pipeline.follow_accepting(there.settings, f"{ERRANT}:1")


def test_transactions_of_a_replica_that_was_the_primary_before(fresh_server: StartServer, tmp_path: Path) -> None:
    """Its UUID is in the set that was read. Applied now, its change would overwrite the later one of the primary."""
    old, new = servers(fresh_server, "mysql")
    uuid = run(new, "SELECT @@server_uuid")[0][0]
    made = [(f"{OLD}:1", MADE[0]), (f"{uuid}:1", MADE[1]), (f"{uuid}:2", insert(1))]
    shop = begun(old, tmp_path, made)
    later = (f"{OLD}:2", "UPDATE shop.k SET id = 2")
    logged(old, later)
    shop.delta()
    logged(new, *made, (f"{uuid}:3", "UPDATE shop.k SET id = 9"), later)
    with pytest.raises(Errant) as caught:
        plan_interval(shop.at(new).settings)
    assert f"transactions {uuid}:3" in caught.value.why
    assert f"loader follow --accept {uuid}:3" in caught.value.hint


def test_a_primary_after_a_replica_that_does_not_keep_the_order(fresh_server: StartServer, tmp_path: Path) -> None:
    """A replica lacked a transaction of its primary when it was read. The primary has it before others that were read."""
    replica, primary = servers(fresh_server, "mysql")
    uuid = run(primary, "SELECT @@server_uuid")[0][0]
    made = [(f"{uuid}:{number}", statement) for number, statement in enumerate(MADE, 1)]
    shop = begun(replica, tmp_path, made)
    logged(replica, (f"{uuid}:5", insert(2)))
    assert rows(shop, shop.delta()) == [2]
    logged(primary, *made, (f"{uuid}:4", insert(1)), (f"{uuid}:5", insert(2)))
    there = shop.at(primary)
    assert rows(there, there.delta()) == [1]


def errant_refused(shop: Shop, gtid: str) -> None:
    """Twice the same error, with the command that accepts these transactions."""
    for _ in range(2):
        with pytest.raises(Errant, match="errant transactions before transactions that were read") as caught:
            plan_interval(shop.settings)
        assert f"transactions {gtid}:" in caught.value.why
        assert f"loader follow --accept {gtid};" in caught.value.hint


def mariadb_begun(start: StartServer, folder: Path) -> tuple[Shop, Server, list[tuple[str, str]]]:
    """A source on which 0-1-1 to 0-1-5 were read, an empty server, and the first three transactions."""
    old, new = servers(start, "mariadb")
    made = list(zip(gtids("mariadb", 1, 2, 3), MADE, strict=True))
    shop = begun(old, folder, made)
    logged(old, ("0-1-4", insert(1)), ("0-1-5", insert(2)))
    assert rows(shop, shop.delta()) == [1, 2]
    return shop, new, made


@pytest.mark.parametrize("errant", ["0-2-4", "2-2-1"], ids=["in the same domain", "in another domain"])
def test_writes_to_a_mariadb_replica_before_what_was_read(
    errant: str, fresh_server: StartServer, tmp_path: Path
) -> None:
    """Without gtid_strict_mode, the replica writes 0-2-4 and then replicates 0-1-4."""
    shop, new, made = mariadb_begun(fresh_server, tmp_path)
    logged(new, *made, (errant, insert(99)), ("0-1-4", insert(1)), ("0-1-5", insert(2)))
    there = shop.at(new)
    errant_refused(there, errant)
    logged(new, ("0-2-6", insert(3)))
    errant_refused(there, errant)
    with pytest.raises(UsageError, match="transactions 0-2-6 are not errant"):
        pipeline.follow_accepting(there.settings, "0-2-6")
    assert pipeline.follow_accepting(there.settings, errant).accepted == errant
    assert rows(there, there.delta()) == [3]
    run(new, "FLUSH BINARY LOGS", insert(4))
    assert rows(there, there.delta()) == [4]


def test_accepting_some_writes_to_a_mariadb_replica_does_not_accept_later_ones(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    shop, new, made = mariadb_begun(fresh_server, tmp_path)
    logged(new, *made, ("2-2-1", insert(98)), ("2-2-2", insert(99)), ("0-1-4", insert(1)), ("0-1-5", insert(2)))
    there = shop.at(new)
    errant_refused(there, "2-2-2")
    with pytest.raises(Errant) as caught:
        pipeline.follow_accepting(there.settings, "2-2-1")
    assert "transactions 2-2-2:" in caught.value.why
    assert pipeline.follow_accepting(there.settings, "2-2-2").accepted == "2-2-2"
    logged(new, ("0-2-6", insert(3)), ("2-2-3", insert(4)))
    assert rows(there, there.delta()) == [3, 4]


def test_a_new_mariadb_domain_of_the_old_primary_is_read(fresh_server: StartServer, tmp_path: Path) -> None:
    """A replica logs domains in another order, so it can have the first transaction of a new one earlier."""
    shop, new, made = mariadb_begun(fresh_server, tmp_path)
    logged(new, *made, ("0-1-4", insert(1)), ("2-1-1", insert(7)), ("0-1-5", insert(2)), ("0-2-6", insert(3)))
    there = shop.at(new)
    assert rows(there, there.delta()) == [7, 3]
