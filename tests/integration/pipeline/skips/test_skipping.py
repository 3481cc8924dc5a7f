"""Sources beside each other on one server, and transactions that are skipped, on real servers that replicate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Server
from infra.servers.process import wait_until
from loader import pipeline
from loader.extract.spec import TransportSettings
from loader.pipeline import chain_of
from loader.staging.documents import Manifest, Skip
from loader.store.registry import open_store
from loader.transport import dump
from loader.transport.server.connection import connected
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop, StartServer
from tests.support.replicas import address_of, replicating, run
from tests.unit.binlog.reading import fields, records

pytestmark = pytest.mark.integration

UNCAPTURED = "row events of tables that are not captured"
SERVERS = "row events of transactions from server ids that are skipped"
MARKED = "row events of transactions that touch a marker table"
TABLES = (
    "CREATE DATABASE shop",
    "CREATE DATABASE loader",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))",
    "CREATE TABLE loader.marker (id INT PRIMARY KEY, times INT)",
    "INSERT INTO loader.marker VALUES (1, 0)",
)
MARK = "UPDATE loader.marker SET times = times + 1"


def source(server: Server, folder: Path, name: str, **skip: Any) -> Shop:
    """A source of its own, whose chain begins now."""
    settings = settings_of(address_of(server), "shop.*", folder)
    settings = settings.model_copy(update={"name": name, "skip": Skip(**skip)})
    pipeline.begin(settings)
    return Shop(server, settings)


def lines(shop: Shop, *manifests: Manifest) -> list[str]:
    """The staged lines of these intervals."""
    store = open_store(shop.settings.staging_root)
    return [line for manifest in manifests for file in manifest.files for line in records(store.get(file.key))]


def keys(shop: Shop, *manifests: Manifest) -> list[int]:
    return sorted(int(fields(line)[5] or 0) for line in lines(shop, *manifests))


def skipped(manifest: Manifest) -> dict[str, int]:
    assert manifest.balance
    return manifest.balance.skipped


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest, fresh_server: StartServer) -> Server:
    started = fresh_server(request.param)
    run(started, *TABLES)
    return started


def insert(server: Server, *numbers: int) -> None:
    run(server, *(f"INSERT INTO shop.orders VALUES ({number}, REPEAT('x', 50))" for number in numbers))


def transaction(server: Server, *statements: str) -> None:
    run(server, "BEGIN", *statements, "COMMIT")


@pytest.fixture
def server_ids(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The server id of each dump that is asked for."""
    real, seen = dump._server_id, []

    def noted() -> int:
        seen.append(real())
        return seen[-1]

    monkeypatch.setattr(dump, "_server_id", noted)
    yield seen


def test_sources_on_one_server_have_chains_and_server_ids_of_their_own(
    server: Server, tmp_path: Path, server_ids: list[int]
) -> None:
    one, other = source(server, tmp_path, "one"), source(server, tmp_path, "other")
    skipping = source(server, tmp_path, "skipping", marker_tables=["loader.marker"])
    often: list[Manifest] = []
    for round_ in range(4):
        insert(server, *range(100 * round_, 100 * round_ + 40))
        transaction(server, f"INSERT INTO shop.orders VALUES ({100 * round_ + 90}, 'y')", MARK)
        often.append(one.delta())
    insert(server, 1000)
    with ThreadPoolExecutor(3) as pool:  # all at once
        last, once, without = pool.map(Shop.delta, (one, other, skipping))
    every = [*(100 * round_ + n for round_ in range(4) for n in (*range(40), 90)), 1000]
    assert keys(one, *often, last) == keys(other, once) == every
    assert lines(one, *often, last) == lines(other, once)
    assert keys(skipping, without) == [key for key in every if key % 100 != 90]
    assert skipped(without) == {UNCAPTURED: 0, MARKED: 8}
    assert skipped(once) == {UNCAPTURED: 4}
    assert {manifest.start_seqno for manifest in (*often, last)} == _folders(one)
    assert _folders(other) == _folders(skipping) == {once.start_seqno}
    assert len(server_ids) >= 7 and len(set(server_ids)) == len(server_ids)


def _folders(shop: Shop) -> set[int]:
    """The intervals of a chain, as they lie in the store."""
    store, generation = open_store(shop.settings.staging_root), chain_of(shop.settings).require_generation()
    return {int(name) for name in store.folders(f"{shop.settings.name}/{generation.name}/") if name.isdigit()}


@pytest.fixture(params=["mysql", "mariadb"])
def ring(request: pytest.FixtureRequest, fresh_server: StartServer) -> tuple[Server, Server]:
    """Two servers, with ids 1 and 2, each of which is a replica of the other."""
    more: dict[str, str | None] = {} if request.param == "mysql" else {"log_slave_updates": "ON"}
    a = fresh_server(request.param, more)
    b = fresh_server(request.param, {"server_id": "2", **more})
    if request.param == "mariadb":
        run(b, "SET GLOBAL gtid_domain_id = 2")
    run(a, *TABLES)
    replicating(a, b)
    replicating(b, a)
    return a, b


def has(server: Server, number: int) -> Callable[[], bool]:
    return lambda: run(server, f"SELECT COUNT(*) FROM shop.orders WHERE id = {number}") == [(1,)]


def test_what_comes_from_the_other_of_two_servers_is_skipped(ring: tuple[Server, Server], tmp_path: Path) -> None:
    a, b = ring
    at_a, at_b = source(a, tmp_path, "a", server_ids=[2]), source(b, tmp_path, "b", server_ids=[1])
    both = source(a, tmp_path, "both")
    insert(a, 1, 2)
    transaction(b, "INSERT INTO shop.orders VALUES (11, 'b'), (12, 'b')", "INSERT INTO shop.orders VALUES (13, 'b')")
    run(b, "ALTER TABLE shop.orders ADD COLUMN more INT")
    assert wait_until(has(a, 13), 60) and wait_until(has(b, 2), 60)
    assert wait_until(lambda: len(run(a, "SHOW COLUMNS FROM shop.orders")) == 3, 60)
    run(a, "INSERT INTO shop.orders VALUES (3, 'a', 3)")
    run(b, "INSERT INTO shop.orders VALUES (14, 'b', 4)")
    assert wait_until(has(a, 14), 60) and wait_until(has(b, 3), 60)
    staged = {shop.settings.name: shop.delta() for shop in (at_a, at_b, both)}
    assert keys(at_a, staged["a"]) == [1, 2, 3]
    assert keys(at_b, staged["b"]) == [11, 12, 13, 14]
    assert keys(both, staged["both"]) == [1, 2, 3, 11, 12, 13, 14]
    assert skipped(staged["a"]) == {UNCAPTURED: 0, SERVERS: 3}
    assert skipped(staged["b"]) == {UNCAPTURED: 0, SERVERS: 3}
    assert [len(staged[name].barriers) for name in ("a", "b", "both")] == [0, 1, 1]
    assert staged["a"].gtids == staged["both"].gtids


@pytest.mark.parametrize("compressed", [False, True])
def test_a_marker_table_that_is_touched_first_or_last(server: Server, compressed: bool, tmp_path: Path) -> None:
    shop = source(server, tmp_path, "shop", marker_tables=["loader.marker"])
    if compressed and server.kind == "mysql":
        run(server, "SET GLOBAL binlog_transaction_compression = ON")
    elif compressed:
        run(server, "SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
    name = "REPEAT('x', 90)"
    transaction(server, *(f"INSERT INTO shop.orders VALUES ({number}, {name})" for number in (1, 2)))
    transaction(server, MARK, *(f"INSERT INTO shop.orders VALUES ({number}, {name})" for number in (11, 12)))
    transaction(server, *(f"INSERT INTO shop.orders VALUES ({number}, {name})" for number in (21, 22)), MARK)
    transaction(server, "INSERT INTO shop.orders VALUES (3, 'x')", "UPDATE loader.marker SET times = 0 WHERE id = 7")
    manifest = shop.delta()
    assert keys(shop, manifest) == [1, 2, 3]
    assert skipped(manifest) == {UNCAPTURED: 0, MARKED: 6}
    assert manifest.balance
    types = {name for name in manifest.balance.event_types if "PAYLOAD" in name or "COMPRESSED" in name}
    assert bool(types) == compressed


def test_a_changed_configuration_counts_from_the_next_plan_on(server: Server, tmp_path: Path) -> None:
    shop = source(server, tmp_path, "shop")
    transaction(server, "INSERT INTO shop.orders VALUES (1, 'x')", MARK)
    chosen = pipeline.plan_interval(shop.settings)
    assert chosen
    changed = shop.settings.model_copy(update={"skip": Skip(marker_tables=("loader.marker",))})
    after = Shop(server, changed)
    assert pipeline.plan_interval(changed) == chosen.model_copy(update={"new": False})
    first = after.extract(chosen)
    transaction(server, "INSERT INTO shop.orders VALUES (2, 'x')", MARK)
    insert(server, 3)
    assert keys(after, first) == [1]
    assert keys(after, after.delta()) == [3]


def test_a_skipped_xa_transaction_stays_so_when_it_is_committed(server: Server, tmp_path: Path) -> None:
    shop = source(server, tmp_path, "shop", marker_tables=["loader.marker"])
    for xid, marks in (("a", [MARK]), ("b", [])):
        order = f"INSERT INTO shop.orders VALUES ({ord(xid)}, 'x')"
        run(server, f"XA START '{xid}'", order, *marks, f"XA END '{xid}'", f"XA PREPARE '{xid}'")
    first = shop.delta()
    assert [group.skipped for group in first.held] == [True, False]
    run(server, "XA COMMIT 'a'", "XA COMMIT 'b'")
    insert(server, 1)
    second = shop.delta()
    assert keys(shop, first, second) == [1, ord("b")]
    assert skipped(first) == {UNCAPTURED: 0, MARKED: 2}
    assert second.held == ()


def test_transactions_that_are_given_another_server_id_by_their_session(server: Server, tmp_path: Path) -> None:
    if server.kind == "mysql":
        pytest.skip("only MariaDB lets a session set its server id")
    shop = source(server, tmp_path, "shop", server_ids=[77])
    for number, server_id in ((1, 1), (2, 77), (3, 78)):
        run(server, f"SET SESSION server_id = {server_id}", f"INSERT INTO shop.orders VALUES ({number}, 'x')")
    assert keys(shop, shop.delta()) == [1, 3]


def test_a_log_read_from_its_files_skips_the_same(server: Server, tmp_path: Path) -> None:
    shop = source(server, tmp_path, "shop", marker_tables=["loader.marker"])
    files = shop.settings.model_copy(
        update={"name": "files", "transport": TransportSettings(kind="file", path=str(server.log_dir))}
    )
    pipeline.begin(files)
    with connected(address_of(server)) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in range(2000):
            cursor.execute(f"INSERT INTO shop.orders VALUES ({number}, REPEAT('x', 90))")
        cursor.execute(MARK)
        cursor.execute("COMMIT")
    insert(server, 5000)
    network, at_hand = shop.delta(), Shop(server, files).delta()
    assert keys(shop, network) == keys(shop, at_hand) == [5000]
    assert skipped(network) == skipped(at_hand) == {UNCAPTURED: 0, MARKED: 2001}
