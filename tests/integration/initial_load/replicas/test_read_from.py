"""Tables are read from a replica, as of a position of the source."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.servers import Kind, Options
from infra.servers.process import wait_until
from loader.doctor.replica import is_readable
from loader.errors import UsageError
from loader.initial_load.run import stage_tables
from loader.initial_load.spec import TableLoad
from loader.source.server_facts import query
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.initial_load.loading import spec_of, staged_keys
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import caught_up, options_of_replica, replicating

pytestmark = pytest.mark.integration

ONLY_ON_REPLICA = 99


@pytest.fixture(params=["mysql", "mariadb"])
def servers(request: pytest.FixtureRequest, fresh_server: StartServer) -> Iterator[tuple[SourceServer, SourceServer]]:
    """A source and its replica, with a table `t` that has one row more on the replica, and `bag` without a key."""
    yield primary_and_replica(fresh_server, request.param)


def primary_and_replica(fresh_server: StartServer, kind: Kind) -> tuple[SourceServer, SourceServer]:
    primary = SourceServer(fresh_server(kind))
    replica = SourceServer(fresh_server(kind, options_of_replica(kind)))
    replica.drop()
    replica.schema = primary.schema
    replicating(primary.server, replica.server)
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    primary.run("CREATE TABLE bag (id INT)", "INSERT INTO bag VALUES (4)")
    caught_up(primary.server, replica.server)
    replica.run("SET SESSION sql_log_bin = 0", f"INSERT INTO t VALUES ({ONLY_ON_REPLICA})")
    replica.run("SET SESSION sql_log_bin = 0", f"INSERT INTO bag VALUES ({ONLY_ON_REPLICA})")
    return primary, replica


def read_files(root: Path, table: str) -> list[Path]:
    return list(root.rglob(f"load/*/{table}/**/part-*"))


def stage(primary: SourceServer, replica: SourceServer, root: Path) -> dict[str, TableLoad]:
    spec = spec_of(primary, root, chunk_rows=2).model_copy(update={"read_from": replica.address})
    return {table.table.partition(".")[2]: table for table in stage_tables(Threads(2), spec).tables}


def set_replication(replica: SourceServer, statement: str) -> None:
    """Run a statement while changes are not applied."""
    word = "REPLICA" if replica.kind == "mysql" else "SLAVE"
    replica.run(f"STOP {word} SQL_THREAD", statement, f"START {word} SQL_THREAD")


def delay(replica: SourceServer, seconds: int) -> None:
    if replica.kind == "mysql":
        set_replication(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_DELAY={seconds}")
    else:
        replica.run("STOP SLAVE", f"CHANGE MASTER TO MASTER_DELAY={seconds}", "START SLAVE")


def test_a_load_waits_for_the_replica_and_reads_it(
    servers: tuple[SourceServer, SourceServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A table without a key is read from the source."""
    primary, replica = servers
    delay(replica, 600)
    primary.run("INSERT INTO t VALUES (50)")
    before = primary.log_end()
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.INFO):
        load = pool.submit(stage, primary, replica, tmp_path)
        try:
            assert wait_until(lambda: "waiting for the replica to reach the position" in caplog.text, 60)
            assert not read_files(tmp_path, "t")
        finally:
            delay(replica, 0)
        found = load.result(60)
    assert [table.error for table in found.values()] == [None, None]
    assert staged_keys(tmp_path, "t") == [1, 2, 3, 50, ONLY_ON_REPLICA]
    assert staged_keys(tmp_path, "bag") == [4]
    assert (found["t"].position, found["t"].exact_at) == (str(before), str(primary.log_end()))
    again = stage(primary, replica, tmp_path)
    assert {table.status for table in again.values()} == {"already"}


def test_a_load_waits_for_transactions_that_a_replica_may_be_committing(
    fresh_server: StartServer, tmp_path: Path
) -> None:
    """MariaDB that applies in parallel reaches their GTIDs before it shows their rows; XA RECOVER shows them."""
    primary, replica = primary_and_replica(fresh_server, "mariadb")
    with replica.connected() as applier, ThreadPoolExecutor(1) as pool:
        insert = f"INSERT INTO `{replica.schema}`.t VALUES (5)"
        for statement in ("SET SESSION sql_log_bin = 0", "XA START 'x'", insert, "XA END 'x'", "XA PREPARE 'x'"):
            query(applier, statement)
        loading = pool.submit(stage, primary, replica, tmp_path)
        time.sleep(2)
        assert not loading.done()
        query(applier, "XA COMMIT 'x'")
        assert loading.result(60)["t"].error is None
    assert 5 in staged_keys(tmp_path, "t")


def test_a_load_waits_for_a_replica_that_is_down(
    servers: tuple[SourceServer, SourceServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    primary, replica = servers
    replica.server.stop()
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.INFO):
        load = pool.submit(stage, primary, replica, tmp_path)
        waits = wait_until(lambda: "the server does not answer yet" in caplog.text or load.done(), 60)
        replica.server.start()
        found = load.result(60)
    assert waits
    assert [table.error for table in found.values()] == [None, None]
    assert staged_keys(tmp_path, "t") == [1, 2, 3, ONLY_ON_REPLICA]


def test_a_replica_that_leaves_changes_out_is_refused(
    servers: tuple[SourceServer, SourceServer], tmp_path: Path
) -> None:
    primary, replica = servers
    if replica.kind == "mysql":
        set_replication(replica, "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = (other.t)")
    else:
        replica.run("STOP SLAVE", "SET GLOBAL replicate_ignore_table = 'other.t'", "START SLAVE")
    with pytest.raises(UsageError, match="does not apply all changes"):
        is_readable(primary.address, replica.address)
    error = stage(primary, replica, tmp_path)["t"].error
    assert error is not None
    assert error["what"] == "the replica does not apply all changes of its source, so rows would be missing"
    assert error["why"] == "replicate_ignore_table=other.t"
    assert not read_files(tmp_path, "t")


def test_a_replica_with_another_definition_is_refused(
    servers: tuple[SourceServer, SourceServer], tmp_path: Path
) -> None:
    primary, replica = servers
    replica.run("SET SESSION sql_log_bin = 0", "ALTER TABLE t ADD COLUMN more INT")
    error = stage(primary, replica, tmp_path)["t"].error
    assert error is not None
    assert error["what"] == "the replica has another definition of the table than the source"
    assert error["error"] == UsageError.__name__
    assert not read_files(tmp_path, "t")


def test_the_doctor_warns_about_a_replica_that_can_be_written(servers: tuple[SourceServer, SourceServer]) -> None:
    primary, replica = servers
    assert is_readable(primary.address, replica.address).severity == "warning"
    replica.run("SET GLOBAL read_only = ON")
    assert is_readable(primary.address, replica.address).severity == "ok"


def test_the_source_may_be_named(servers: tuple[SourceServer, SourceServer], tmp_path: Path) -> None:
    primary, _ = servers
    assert stage(primary, primary, tmp_path)["t"].error is None
    assert staged_keys(tmp_path, "t") == [1, 2, 3]


def test_without_gtids_no_replica_can_be_read(fresh_server: StartServer, tmp_path: Path) -> None:
    options: Options = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    primary = SourceServer(fresh_server("mysql", options))
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)")
    error = stage(primary, primary, tmp_path)["t"].error
    assert error is not None
    assert error["error"] == UsageError.__name__
    assert "have no GTIDs" in error["what"]
