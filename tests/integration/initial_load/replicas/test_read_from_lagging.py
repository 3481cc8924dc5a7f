"""Replicas whose GTIDs do not tell that they lack transactions of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.initial_load.run import stage_tables
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import caught_up, options_of_replica, replicating, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def refusal(primary: SourceServer, replica: SourceServer, root: Path) -> str:
    """Why the replica is not read."""
    spec = spec_of(primary, root).model_copy(update={"read_from": replica.address})
    (table,) = stage_tables(Threads(2), spec).tables
    assert table.error
    return str(table.error["what"])


@pytest.mark.parametrize("mode", ["OFF_PERMISSIVE", "OFF"])
def test_transactions_without_gtids_after_others_with_gtids(
    fresh_server: StartServer, tmp_path: Path, mode: str
) -> None:
    """`gtid_mode` was ON and is switched off. So `gtid_executed` is not empty, and lacks the newest transactions."""
    primary = SourceServer(fresh_server("mysql"))
    replica = SourceServer(fresh_server("mysql", options_of_replica("mysql")))
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    replicating(primary.server, replica.server)
    caught_up(primary.server, replica.server)
    run(replica.server, "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION=0")
    for step in ("ON_PERMISSIVE", "OFF_PERMISSIVE", *(["OFF"] if mode == "OFF" else [])):
        for server in (primary.server, replica.server):
            run(server, f"SET GLOBAL gtid_mode = {step}")
    run(replica.server, "START REPLICA IO_THREAD")  # so the replica lags
    primary.run("INSERT INTO t VALUES (4)")
    assert refusal(primary, replica, tmp_path) == (
        "a replica cannot be read, because the transactions of the source have no GTIDs"
    )


def test_a_server_that_follows_another_source_in_the_same_domain(fresh_server: StartServer, tmp_path: Path) -> None:
    """After a failover, a replica still follows the old source, whose sequence numbers are higher."""
    old = SourceServer(fresh_server("mariadb"))
    new = SourceServer(fresh_server("mariadb", options_of_replica("mariadb")))
    replica = SourceServer(fresh_server("mariadb", {"server_id": "3", "log_slave_updates": "ON"}))
    old.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    replicating(old.server, new.server)
    replicating(old.server, replica.server)
    run(new.server, "STOP SLAVE")
    for key in range(100, 110):  # lost transactions of the old source
        old.run(f"INSERT INTO t VALUES ({key})")
    caught_up(old.server, replica.server)
    new.schema = old.schema
    new.run("INSERT INTO t VALUES (4)")
    assert refusal(new, replica, tmp_path) == (
        "the replica does not replicate from the source directly, so it may have other transactions"
    )
