"""A replica as the source: for the initial load and the log, or for the load alone, with the primary's log after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from infra.servers import Options, Server, fetch
from loader import pipeline
from loader.extract.spec import TransportSettings
from loader.pipeline import chain_of, plan_interval
from loader.settings import SourceSettings
from loader.source.server_facts import WrongSettings
from tests.conftest import StartServer
from tests.integration.initial_load.folding import extract_all, extract_next, folded_rows, load
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.writes.test_under_writes import KEYS, Writer, create_tables, rows_of
from tests.integration.pipeline.conftest import settings_of
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, run

pytestmark = pytest.mark.integration

_PARALLEL: dict[str, Options] = {
    "mysql": {"replica_parallel_workers": "4", "replica_preserve_commit_order": "ON"},
    "mariadb": {"slave_parallel_threads": "4", "slave_parallel_mode": "optimistic"},
}


@contextmanager
def writing(primary: SourceServer) -> Iterator[list[Writer]]:
    writers = [Writer(primary, seed) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        for writer in writers:
            writer.goes_on(5)
        yield writers
        for writer in writers:
            writer.goes_on(5)
    finally:
        for writer in writers:
            writer.stop()


def at(settings: SourceSettings, server: Server) -> SourceSettings:
    """The same source on another server."""
    address = address_of(server)
    transport = TransportSettings(kind="network", server=address)
    return settings.model_copy(update={"server": address, "transport": transport})


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_load_from_a_replica(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    """The log of the replica continues the load; so does the log of the primary, once the replica's log was staged."""
    primary = SourceServer(fresh_server(kind))
    create_tables(primary)
    replica = fresh_server(kind, dict(options_of_replica(kind)) | dict(_PARALLEL[kind]))
    replicating(primary.server, replica)
    settings = settings_of(primary.address, f"{primary.schema}.*", tmp_path).model_copy(update={"chunk_rows": 100})
    wanted = settings.tables.model_copy(update={"exclude": (f"{primary.schema}.other_*",)})
    settings = settings.model_copy(update={"tables": wanted})
    from_replica = at(settings, replica)
    with writing(primary):
        pipeline.begin(from_replica)
        loads = load(from_replica, 2)
    assert [table.error for table in loads.tables] == [None] * 3
    caught_up(primary.server, replica)
    extract_all(from_replica)
    assert folded_rows(from_replica, loads, KEYS) == {table: rows_of(primary, table) for table in KEYS}

    with writing(primary):
        assert extract_next(settings)
    extract_all(settings)
    assert chain_of(settings).require_generation().name == "0002"
    assert folded_rows(settings, loads, KEYS) == {table: rows_of(primary, table) for table in KEYS}


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_replica_that_does_not_log_what_it_replicates(kind: str, fresh_server: StartServer, tmp_path: Path) -> None:
    """Its tables change, and its log does not say so."""
    primary = SourceServer(fresh_server(kind))
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)")
    options = {"mysql": {"log_replica_updates": "OFF"}, "mariadb": {"log_slave_updates": "OFF"}}[kind]
    replica = fresh_server(kind, {"server_id": "2"} | options)
    settings = settings_of(address_of(replica), f"{primary.schema}.*", tmp_path)
    pipeline.begin(settings)
    replicating(primary.server, replica)
    primary.run("INSERT INTO t VALUES (1)")
    caught_up(primary.server, replica)
    for refused in (pipeline.begin, plan_interval):
        with pytest.raises(WrongSettings, match="does not log the changes that it replicates") as caught:
            refused(settings)
        assert "log_replica_updates" in caught.value.hint


def test_a_mariadb_replica_of_mysql_that_does_not_log_what_it_replicates(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """What it replicates has no GTID of MariaDB, so it has no position of replication either."""
    (plugin, *_) = fetch("mariadb").prefix.rglob("caching_sha2_password.so")
    primary = fresh_server("mysql")
    replica = fresh_server("mariadb", {"server_id": "2", "log_slave_updates": "OFF", "plugin_dir": str(plugin.parent)})
    settings = settings_of(address_of(replica), "shop.*", tmp_path)
    pipeline.begin(settings)
    names = ("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET collation_server = utf8mb4_general_ci")
    run(
        primary,
        "FLUSH BINARY LOGS",
        *names,
        "CREATE DATABASE shop CHARACTER SET latin1",
        "CREATE TABLE shop.t (id INT)",
    )
    file, end = run(primary, "SHOW BINARY LOG STATUS")[0][:2]
    run(
        replica,
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='{primary.user}',"
        f" MASTER_LOG_FILE='{file}', MASTER_LOG_POS=4, MASTER_USE_GTID=no",
        "START SLAVE",
    )
    assert run(replica, f"SELECT MASTER_POS_WAIT('{file}', {end}, 60)")[0][0] is not None
    assert run(replica, "SELECT COUNT(*) FROM shop.t") == [(0,)]
    for statement in ("SELECT 1", "STOP SLAVE"):  # stopped for a backup, for example
        run(replica, statement)
        with pytest.raises(WrongSettings, match="does not log the changes that it replicates") as caught:
            plan_interval(settings)
        assert "gtid_slave_pos" not in caught.value.hint


def test_a_galera_node_that_does_not_log_what_it_replicates(fresh_server: StartServer, tmp_path: Path) -> None:
    """What other nodes commit is not in its log."""
    node = fresh_server("mariadb", {"wsrep_on": "ON"})
    settings = settings_of(address_of(node), "shop.*", tmp_path)
    with pytest.raises(WrongSettings, match="does not log the changes that it replicates") as caught:
        pipeline.begin(settings)
    assert "set log_replica_updates (log_slave_updates) and restart it" in caught.value.hint
