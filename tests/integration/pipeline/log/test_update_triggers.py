"""Virtual columns with a BEFORE UPDATE trigger: MariaDB before 11 logs values from before the trigger."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from infra.servers import NEW_MARIADB, Server
from loader import pipeline
from loader.errors import UnsupportedError
from loader.initial_load.run import stage_tables
from loader.materialise.plan.staging_gaps import check_rows_staged
from loader.model.table import TableName
from loader.spark.workers import Threads
from loader.staging.documents import Manifest
from tests.conftest import StartServer
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.nameless import Shop
from tests.support.replicas import address_of, run

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

TABLES = (
    "CREATE DATABASE nameless",
    "CREATE TABLE nameless.a (id INT PRIMARY KEY, n INT, v INT AS (n + 1) VIRTUAL)",
    "CREATE TABLE nameless.b (id INT PRIMARY KEY, n INT, s INT AS (n + 1) STORED)",
    "INSERT INTO nameless.a (id, n) VALUES (1, 1), (2, 2)",
    "INSERT INTO nameless.b (id, n) VALUES (1, 5), (2, 6)",
)
TRIGGER = "CREATE TRIGGER nameless.t{0} BEFORE UPDATE ON nameless.{0} FOR EACH ROW SET NEW.n = NEW.n * 100"
UPDATE = "UPDATE nameless.a JOIN nameless.b USING (id) SET a.n = b.n, b.n = 0 ORDER BY a.id"
REFUSED = "the table has virtual columns and a BEFORE UPDATE trigger: v"
UNSEEN = "the user may not see whether a table with virtual columns has a BEFORE UPDATE trigger: v"


def begun(server: Server, folder: Path, *statements: str, user: str = "root") -> Shop:
    run(server, *TABLES, *statements)
    address = address_of(server).model_copy(update={"user": user})
    settings = settings_of(address_of(server), "nameless.*", folder).model_copy(update={"server": address})
    pipeline.begin(settings)
    return Shop(server, settings, "FULL")


def refusals(shop: Shop) -> dict[str, str]:
    job = pipeline.read_tables_job(shop.settings, ("nameless.a", "nameless.b"), again=True)
    found = stage_tables(Threads(2), cast("Any", job.spec)).tables
    return {one.table: str(one.error["what"]) if one.error else "" for one in found}


def stopped(manifest: Manifest) -> list[str]:
    return [one.table for one in manifest.left_out]


def test_a_table_with_both_is_refused_by_a_load(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path, TRIGGER.format("b"))
    assert refusals(shop) == {"nameless.a": "", "nameless.b": ""}
    shop.run(TRIGGER.format("a"))
    assert refusals(shop) == {"nameless.a": REFUSED, "nameless.b": ""}
    shop.run("ALTER TABLE nameless.a DROP v, ADD v INT AS (n + 1) STORED")
    assert refusals(shop) == {"nameless.a": "", "nameless.b": ""}


def test_a_user_that_sees_no_triggers(fresh_server: StartServer, tmp_path: Path) -> None:
    user = ("CREATE USER loader", "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO loader")
    shop = begun(fresh_server("mariadb"), tmp_path, *user, "GRANT SELECT ON nameless.* TO loader", user="loader")
    assert refusals(shop) == {"nameless.a": UNSEEN, "nameless.b": ""}
    for place in ("nameless.a", "`name%`.*", "*.*"):
        shop.run(f"GRANT TRIGGER ON {place} TO loader")
        assert refusals(shop) == {"nameless.a": "", "nameless.b": ""}
        shop.run(f"REVOKE TRIGGER ON {place} FROM loader")
        assert refusals(shop) == {"nameless.a": UNSEEN, "nameless.b": ""}


@pytest.mark.parametrize("dropped", [False, True])
def test_a_table_that_gets_a_trigger_stops(dropped: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb"), tmp_path)
    shop.run(UPDATE)
    assert stopped(shop.delta()) == []
    shop.run("UPDATE nameless.b SET n = 7")
    shop.run("\n".join([TRIGGER.format("b"), TRIGGER.format("a"), UPDATE, *["DROP TRIGGER nameless.ta"] * dropped]))
    assert run(shop.server, "SELECT n, v FROM nameless.a") == [(700, 701), (700, 701)]
    manifest = shop.delta()
    values = [line[1:] for (name, _), lines in shop.staged(manifest).items() for line in lines if name == "nameless.a"]
    assert values == [["1", "700", "8"], ["2", "700", "8"]]
    assert stopped(manifest) == ["nameless.a"]
    assert (manifest.left_out[0].seqno == manifest.start_seqno + 1) is not dropped
    assert shop.again(manifest) == ()
    with pytest.raises(UnsupportedError, match="the log may have wrong values of virtual columns") as caught:
        check_rows_staged(TableName("nameless", "a"), [manifest], manifest.start_seqno, manifest.stop_seqno)
    assert "loader initial-load --table nameless.a --again" in caught.value.hint
    shop.run("INSERT INTO nameless.b (id, n) VALUES (3, 3)")
    assert stopped(shop.delta()) == ([] if dropped else ["nameless.a"])


def test_a_server_that_does_not_log_virtual_columns_of_updates(fresh_server: StartServer, tmp_path: Path) -> None:
    shop = begun(fresh_server("mariadb", {}, NEW_MARIADB), tmp_path, TRIGGER.format("a"))
    assert refusals(shop) == {"nameless.a": "", "nameless.b": ""}
    shop.run(UPDATE)
    assert stopped(shop.delta()) == []
