"""The staging root was restored from an older backup, and the warehouse has what was merged since."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from infra.servers import Kind, Server
from loader.extract.spec import TransportSettings
from loader.materialise.iceberg.warehouse import Warehouse
from tests.conftest import StartServer
from tests.integration.materialise.live_source import LiveSource, live_source
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, stop_replica

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]
WHAT = "the table's applied position is not in the log of this source"
KINDS: list[Kind] = ["mysql", "mariadb"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_went_on_on_the_same_server(
    kind: Kind, spark: SparkSession, fresh_server: StartServer, tmp_path: Path
) -> None:
    """The intervals are planned again, with other stops. Changes that the tables have are not applied again."""
    with live_source(spark, fresh_server(kind), tmp_path) as live:
        live.run("CREATE TABLE a (id INT, name TEXT)", "INSERT INTO a VALUES (1, 'x')")
        live.load()
        backup(tmp_path)
        live.run("INSERT INTO a VALUES (2, 'y')")
        live.delta()
        restore(tmp_path)
        live.run("INSERT INTO a VALUES (3, 'z')")
        assert live.statuses(live.delta()) == {"a": "applied"}
        assert live.differences() == []


@pytest.mark.parametrize("kind", KINDS)
def test_another_server_was_followed_since(
    kind: Kind, spark: SparkSession, fresh_server: StartServer, tmp_path: Path
) -> None:
    """The same generation then begins elsewhere, so the same position is another place of its log."""
    old, replica = replicated(kind, fresh_server)
    with live_source(spark, old, tmp_path) as live:
        follow_and_back_up(live, tmp_path)
        live.run("FLUSH BINARY LOGS", "INSERT INTO a VALUES (3)")
        live.delta()
        caught_up(old, replica)
        stop_replica(replica)
        there = moved(live, replica)
        there.run("INSERT INTO a VALUES (4)")
        assert there.statuses(there.delta()) == {"a": "applied"}
        assert there.differences() == []

        restore(tmp_path)
        there.run(
            "INSERT INTO a VALUES (5)", "FLUSH BINARY LOGS", *[f"INSERT INTO a VALUES ({n})" for n in range(6, 20)]
        )
        (stopped,) = there.delta().tables
        assert (stopped.status, stopped.error and stopped.error["what"]) == ("quarantined", WHAT)

        warehouse = Warehouse(spark, there.settings.catalog)
        warehouse.session.sql(f"DROP TABLE {warehouse.catalog.name}.{there.database}.a PURGE")
        there.load_again("a")
        there.run("INSERT INTO a VALUES (30)")
        assert there.statuses(there.delta()) == {"a": "applied"}
        assert there.differences() == []


@pytest.mark.parametrize("kind", KINDS)
def test_another_server_is_followed_afterwards(
    kind: Kind, spark: SparkSession, fresh_server: StartServer, tmp_path: Path
) -> None:
    """Its seqnos begin after what the backup knows, so some are those of positions of the old server."""
    old, replica = replicated(kind, fresh_server)
    with live_source(spark, old, tmp_path) as live:
        follow_and_back_up(live, tmp_path)
        live.run(*["FLUSH BINARY LOGS"] * 3, "INSERT INTO a VALUES (3)")
        live.delta()
        caught_up(old, replica)
        stop_replica(replica)
        restore(tmp_path)
        there = moved(live, replica)
        there.run("INSERT INTO a VALUES (4)", *["FLUSH BINARY LOGS"] * 5, "INSERT INTO a VALUES (5)")
        (stopped,) = there.delta().tables
        assert stopped.status == "quarantined" and stopped.error
        assert "an older backup of the staging root was restored" in stopped.error["why"]
        assert "--again" in stopped.error["hint"]
        there.load_again("a")
        there.run("INSERT INTO a VALUES (30)")
        assert there.statuses(there.delta()) == {"a": "applied"}
        assert there.differences() == []


def replicated(kind: Kind, fresh_server: StartServer) -> tuple[Server, Server]:
    """A server and its replica."""
    old, replica = fresh_server(kind), fresh_server(kind, options_of_replica(kind))
    replicating(old, replica)
    return old, replica


def follow_and_back_up(live: LiveSource, folder: Path) -> None:
    """Load a table, apply a change, and back up the staging root."""
    live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    live.load()
    live.run("INSERT INTO a VALUES (2)")
    live.delta()
    backup(folder)


def moved(live: LiveSource, server: Server) -> LiveSource:
    """The source, pointed at another server."""
    address = address_of(server)
    transport = TransportSettings(kind="network", server=address)
    return replace(
        live, server=server, settings=live.settings.model_copy(update={"server": address, "transport": transport})
    )


def backup(folder: Path) -> None:
    shutil.copytree(folder / "staging", folder / "backup")


def restore(folder: Path) -> None:
    shutil.rmtree(folder / "staging")
    shutil.copytree(folder / "backup", folder / "staging")
