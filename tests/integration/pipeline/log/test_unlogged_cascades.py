"""Rows that foreign keys change without a log entry on a MySQL server that logs these changes otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Options, Server
from loader import pipeline
from loader.errors import UnsupportedError
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.model.table import TableName
from loader.staging.documents import Manifest
from tests.conftest import StartServer
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.nameless import Shop
from tests.support.replicas import address_of, caught_up, options_of_replica, replicating, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

NATIVE: Options = {"innodb_native_foreign_keys": "ON"}
TABLES = (
    "CREATE DATABASE nameless",
    "CREATE DATABASE aside",
    "CREATE TABLE aside.parent (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE nameless.child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES aside.parent (id) ON DELETE CASCADE)",
    "CREATE TABLE nameless.grandchild"
    " (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES nameless.child (id) ON DELETE SET NULL)",
    "CREATE TABLE nameless.strict (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES aside.parent (id))",
    "INSERT INTO aside.parent VALUES (1,0),(2,0),(3,0),(4,0)",
    "INSERT INTO nameless.child VALUES (1),(2),(3),(4)",
    "INSERT INTO nameless.grandchild VALUES (1,1),(2,2),(3,3),(4,4)",
)
BOTH = ["nameless.child", "nameless.grandchild"]


def begun(server: Server, folder: Path) -> Shop:
    made = Shop(server, settings_of(address_of(server), "nameless.*", folder), "FULL")
    pipeline.begin(made.settings)
    return made


def stopped(manifest: Manifest) -> list[str]:
    return [one.table for one in manifest.left_out]


def operations(manifest: Manifest) -> dict[str, tuple[int, int, int]]:
    return {file.name.table: (file.inserts, file.updates, file.deletes) for file in manifest.files}


def test_a_replica_of_a_server_that_does_not_log_cascades(fresh_server: StartServer, tmp_path: Path) -> None:
    old, new = fresh_server("mysql", NATIVE), fresh_server("mysql", options_of_replica("mysql"))
    run(old, *TABLES)
    replicating(old, new)
    shop = begun(new, tmp_path)
    shop.run("INSERT INTO nameless.strict VALUES (4)")
    assert stopped(shop.delta()) == []

    run(old, "INSERT INTO aside.parent VALUES (5,0)")
    run(old, "SET foreign_key_checks = 0", "DELETE FROM aside.parent WHERE id = 3")
    caught_up(old, new)
    assert stopped(shop.delta()) == []

    run(old, "DELETE FROM aside.parent WHERE id = 1", "DELETE FROM nameless.grandchild WHERE id = 4")
    caught_up(old, new)
    assert run(new, "SELECT id FROM nameless.child") == [(2,), (3,), (4,)]
    manifest = shop.delta()
    assert (stopped(manifest), operations(manifest)) == (BOTH, {"grandchild": (0, 0, 1)})
    assert shop.again(manifest) == ()
    child = manifest.left_out[0]
    assert manifest.start_seqno < child.seqno == child.last_seqno < manifest.stop_seqno
    with pytest.raises(UnsupportedError, match="foreign keys changed rows of the table without a log entry") as caught:
        check_rows_staged(TableName("nameless", "child"), [manifest], manifest.start_seqno, manifest.stop_seqno)
    assert "the row event of aside.parent lacks the flag USE_SQL_FOREIGN_KEY_F" in caught.value.why
    assert "loader initial-load --table nameless.child --again" in caught.value.hint
    assert "add 'nameless.child' to tables.exclude" in caught.value.hint


def test_a_server_that_did_not_log_cascades_between_two_runs(fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server("mysql")
    run(server, *TABLES)
    shop = begun(server, tmp_path)
    shop.run("DELETE FROM aside.parent WHERE id = 1")
    assert stopped(shop.delta()) == []
    server.restart(NATIVE)
    shop.run("UPDATE aside.parent SET n = 1 WHERE id = 2")
    shop.run("ALTER TABLE nameless.grandchild DROP FOREIGN KEY grandchild_ibfk_1")
    server.restart({"innodb_native_foreign_keys": "OFF"})
    shop.run("DELETE FROM aside.parent WHERE id = 2")
    manifest = shop.delta()
    assert (stopped(manifest), operations(manifest)) == (BOTH, {"child": (0, 0, 1)})
    assert shop.again(manifest) == ()
    shop.run("DELETE FROM aside.parent WHERE id = 3")
    assert stopped(shop.delta()) == []


def test_prepared_rows_of_parents_count_from_their_commit(fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server("mysql", NATIVE)
    run(server, *TABLES)
    shop = begun(server, tmp_path)
    shop.run("XA START 'x'\nDELETE FROM aside.parent WHERE id = 1\nXA END 'x'\nXA PREPARE 'x'")
    server.restart({"innodb_native_foreign_keys": "OFF"})
    first = shop.delta()
    assert (stopped(first), len(first.held)) == ([], 1)
    shop.run("XA COMMIT 'x'")
    second = shop.delta()
    assert (stopped(second), operations(second)) == (BOTH, {})
    assert all(second.start_seqno < one.seqno == one.last_seqno == second.stop_seqno for one in second.left_out)
    assert (shop.again(first), shop.again(second)) == ((), ())
    shop.run("XA START 'y'\nDELETE FROM aside.parent WHERE id = 2\nXA END 'y'\nXA PREPARE 'y'\nXA ROLLBACK 'y'")
    third = shop.delta()
    assert (stopped(third), third.held) == ([], ())
