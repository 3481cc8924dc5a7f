"""MEMORY tables after a restart of the server, which empties them. MariaDB does not always log it."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Kind, Server
from loader import pipeline
from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import TableEmptied, collect_events
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.model.table import TableName
from loader.pipeline import plan_interval
from loader.settings import IntervalLimits
from loader.staging.documents import Manifest
from tests.conftest import StartServer
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.nameless import Shop
from tests.support.replicas import address_of, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

HIDDEN = "SET SESSION sql_log_bin = 0"
M = TableName("nameless", "m")


def begun(server: Server, folder: Path) -> Shop:
    run(
        server,
        "CREATE DATABASE nameless",
        "CREATE TABLE nameless.m (id INT PRIMARY KEY) ENGINE = MEMORY",
        "CREATE TABLE nameless.kept (id INT PRIMARY KEY)",
        "INSERT INTO nameless.m VALUES (1)",
        "INSERT INTO nameless.kept VALUES (1)",
    )
    shop = Shop(server, settings_of(address_of(server), "nameless.*", folder), "FULL")
    pipeline.begin(shop.settings)
    shop.run("INSERT INTO nameless.m VALUES (2)\nINSERT INTO nameless.kept VALUES (2)")
    shop.delta()
    return shop


def emptied(manifest: Manifest, name: TableName = M) -> int:
    """How often the table loses all rows; nothing else happens to it, and no table is incomplete."""
    events = collect_events(name, [manifest], manifest.start_seqno, manifest.stop_seqno)
    assert all(isinstance(event, TableEmptied) for event in events)
    assert manifest.left_out == ()
    return len(events)


def first_opened_unlogged(shop: Shop) -> None:
    shop.server.restart()
    shop.run(f"{HIDDEN}\nSELECT * FROM nameless.m")
    assert run(shop.server, "SELECT * FROM nameless.m") == []


@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_a_restart_empties_the_table_whether_it_is_logged_or_not(
    kind: Kind, fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = begun(fresh_server(kind), tmp_path)
    first_opened_unlogged(shop)
    shop.run("INSERT INTO nameless.m VALUES (3)\nFLUSH BINARY LOGS\nINSERT INTO nameless.m VALUES (4)")
    manifest = shop.delta()
    assert (emptied(manifest), emptied(manifest, TableName("nameless", "kept"))) == (1, 0)
    assert all(barrier.seqno < file.min_seqno for barrier in manifest.barriers for file in manifest.files)
    assert shop.again(manifest) == ()
    shop.server.restart()
    shop.run("INSERT INTO nameless.m VALUES (5)")
    manifest = shop.delta()
    assert emptied(manifest) == (2 if kind == "mariadb" else 1)
    shop.run("FLUSH BINARY LOGS\nINSERT INTO nameless.m VALUES (6)")
    assert emptied(shop.delta()) == 0


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE nameless.m ENGINE = InnoDB", "ALTER TABLE nameless.m ENGINE = MEMORY, ADD x INT"]
)
def test_a_table_that_is_altered_since_the_restart_stops(
    statement: str, fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path)
    first_opened_unlogged(shop)
    shop.run(f"{statement}\nINSERT INTO nameless.m (id) VALUES (3)")
    manifest = shop.delta()
    assert [one.table for one in manifest.left_out] == ["nameless.m"]
    assert shop.again(manifest) == ()
    with pytest.raises(UnsupportedError, match="a restart of the server may have emptied the table") as caught:
        check_rows_staged(M, [manifest], manifest.start_seqno, manifest.stop_seqno)
    assert "loader initial-load --table nameless.m --again" in caught.value.hint
    shop.run("INSERT INTO nameless.m (id) VALUES (4)")
    assert shop.delta().left_out == ()


@pytest.mark.parametrize("hidden", [True, False])
def test_a_restart_before_the_last_interval_of_a_backlog(
    hidden: bool, fresh_server: StartServer, tmp_path: Path
) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path)
    shop.server.restart()
    shop.run((f"{HIDDEN}\n" if hidden else "") + "SELECT * FROM nameless.m")
    shop.run("INSERT INTO nameless.m VALUES (3)\nFLUSH BINARY LOGS\nINSERT INTO nameless.m VALUES (4)")
    shop.settings = shop.settings.model_copy(update={"interval": IntervalLimits(bytes=1)})
    chosen = plan_interval(shop.settings)
    assert chosen is not None
    manifests = [shop.extract(one.start_seqno) for one in pipeline.unfinished(shop.settings)]
    assert len(manifests) > 1
    found = [entry.table for manifest in manifests for entry in manifest.left_out]
    assert found == (["nameless.m"] if hidden else [])


def test_tables_that_are_made_or_dropped_after_the_restart_go_on(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path)
    first_opened_unlogged(shop)
    shop.run("DROP TABLE nameless.m\nCREATE TABLE nameless.m (id INT PRIMARY KEY) ENGINE = MEMORY")
    shop.run("CREATE TABLE nameless.other (id INT PRIMARY KEY) ENGINE = MEMORY\nINSERT INTO nameless.other VALUES (1)")
    manifest = shop.delta()
    assert manifest.left_out == ()
    assert [barrier.tables for barrier in manifest.barriers] == [("nameless.m",), ("nameless.m",), ("nameless.other",)]
