"""Replicas of MariaDB that leave changes out, which no `replicate_...` variable of the default connection shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.initial_load.run import stage_tables
from loader.spark.workers import Threads
from tests.conftest import StartServer
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer
from tests.support.replicas import options_of_replica, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

CASES = {  # name of the connection, options of it, statement, reason of the refusal
    "filter of a named connection": (
        "'c1'",
        "",
        "SET GLOBAL c1.replicate_ignore_table = 'other.t'",
        "replicate_ignore_table=other.t",
    ),
    "changes of another server": ("", ", IGNORE_SERVER_IDS=(77)", "DO 0", "replicate_ignore_server_ids=77"),
    "changes of another domain": ("", ", IGNORE_DOMAIN_IDS=(5)", "DO 0", "replicate_ignore_domain_ids=5"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_replica_that_leaves_changes_out_is_refused(fresh_server: StartServer, tmp_path: Path, case: str) -> None:
    """The row 4 is written by another server and in another domain, as on a source that is a replica itself."""
    name, ignored, filtered, why = CASES[case]
    primary = SourceServer(fresh_server("mariadb"))
    replica = SourceServer(fresh_server("mariadb", options_of_replica("mariadb")))
    primary.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    position = run(primary.server, "SELECT @@global.gtid_binlog_pos")[0][0]
    run(
        replica.server,
        "SET SESSION sql_log_bin = 0",
        f"CREATE DATABASE {primary.schema} CHARACTER SET utf8mb4",
        f"CREATE TABLE {primary.schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {primary.schema}.t VALUES (1), (2), (3)",
        f"SET GLOBAL gtid_slave_pos = '{position}'",
        f"CHANGE MASTER {name} TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.server.port},"
        f" MASTER_USER='{primary.server.user}', MASTER_USE_GTID=slave_pos{ignored}",
        filtered,
        f"START SLAVE {name}",
    )
    primary.run("SET SESSION gtid_domain_id = 5, server_id = 77", "INSERT INTO t VALUES (4)")
    primary.run("CREATE TABLE other (id INT PRIMARY KEY)")  # so that the replica passes the position of row 4
    spec = spec_of(primary, tmp_path).model_copy(
        update={"read_from": replica.address, "only": (f"{primary.schema}.t",)}
    )
    (table,) = stage_tables(Threads(2), spec).tables
    assert table.error
    assert table.error["what"] == "the replica does not apply all changes of its source, so rows would be missing"
    assert table.error["why"] == why
