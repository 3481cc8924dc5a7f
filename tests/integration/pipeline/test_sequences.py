"""Sequences of MariaDB, which its log has as tables, and tables that keep their history."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader import pipeline
from loader.errors import UnsupportedError
from loader.materialise.plan.ddl_events import collect_events
from loader.model.table import TableName
from loader.source.schemas import find_tables, read_schemas
from loader.staging.filters import CapturedTables
from loader.transport.server.connection import connected
from tests.conftest import StartServer
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.log.nameless import Shop
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration

STATEMENTS = """
CREATE SEQUENCE nameless.s START WITH 5 CACHE 3
CREATE SEQUENCE nameless.t NOCACHE
SELECT NEXTVAL(nameless.s)
SELECT NEXTVAL(nameless.t)
SELECT SETVAL(nameless.s, 100)
ALTER SEQUENCE nameless.s INCREMENT BY 2
RENAME TABLE nameless.t TO nameless.u
DROP SEQUENCE nameless.u
CREATE TABLE nameless.a (id INT PRIMARY KEY DEFAULT NEXTVAL(nameless.s), v INT)
INSERT INTO nameless.a (v) VALUES (1), (2)
"""


@pytest.mark.parametrize("metadata", ["FULL", "NO_LOG"])
def test_sequences_are_no_tables(metadata: str, fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server("mariadb", {"binlog_row_metadata": metadata})
    shop = Shop(server, settings_of(address_of(server), "nameless.*", tmp_path), metadata)
    run(server, "CREATE DATABASE nameless", "CREATE SEQUENCE nameless.before")
    pipeline.begin(shop.settings)
    kept = (
        STATEMENTS
        if metadata == "FULL"
        else "\n".join(x for x in STATEMENTS.splitlines() if ".t" not in x and ".u" not in x)
    )
    shop.run(f"SELECT NEXTVAL(nameless.before){kept}")
    manifest = shop.delta()
    assert {str(file.name) for file in manifest.files} == {"nameless.a"}
    assert manifest.left_out == ()
    assert shop.again(manifest) == ()


def test_a_table_with_the_columns_of_a_sequence_is_refused(fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server("mariadb")
    settings = settings_of(address_of(server), "nameless.*", tmp_path)
    run(server, "CREATE DATABASE nameless", "CREATE SEQUENCE nameless.s",
        "CREATE TABLE nameless.copy AS SELECT * FROM nameless.s")  # fmt: skip
    with connected(settings.server) as connection:
        (name,) = find_tables(connection, CapturedTables(settings.tables))
        with pytest.raises(UnsupportedError, match="columns of a sequence") as caught:
            read_schemas(connection, [name])
    assert "exclude" in caught.value.hint


@pytest.mark.parametrize("made", [
    "CREATE TABLE nameless.v (id INT PRIMARY KEY, x INT) WITH SYSTEM VERSIONING",
    "ALTER TABLE nameless.plain ADD SYSTEM VERSIONING",
])  # fmt: skip
def test_the_cure_of_a_table_that_keeps_its_history(made: str, fresh_server: StartServer, tmp_path: Path) -> None:
    server = fresh_server("mariadb")
    shop = Shop(server, settings_of(address_of(server), "nameless.*", tmp_path), "FULL")
    shop.run("CREATE DATABASE nameless\nCREATE TABLE nameless.plain (id INT PRIMARY KEY, x INT)")
    pipeline.begin(shop.settings)
    table = TableName.parse(made.split()[2])
    shop.run(f"{made}\nINSERT INTO {table} VALUES (1,1)\nUPDATE {table} SET x = 2")
    manifest = shop.delta()
    if made.startswith("CREATE"):
        with pytest.raises(UnsupportedError) as caught:
            collect_events(table, [manifest], 0, manifest.stop_seqno)
        assert "tables.exclude" in caught.value.hint
        assert f"ALTER TABLE {table} DROP SYSTEM VERSIONING" in caught.value.hint
    with connected(shop.settings.server) as connection:
        with pytest.raises(UnsupportedError, match="system-versioned") as caught:
            read_schemas(connection, [table])
        assert f"ALTER TABLE {table} DROP SYSTEM VERSIONING" in caught.value.hint
        run(server, f"ALTER TABLE {table} DROP SYSTEM VERSIONING")
        assert [column.name for column in read_schemas(connection, [table])[0].columns] == ["id", "x"]


@pytest.mark.parametrize("used", [False, True])
def test_a_table_whose_name_a_sequence_takes_keeps_its_rows(
    used: bool, fresh_server: StartServer, tmp_path: Path
) -> None:
    server = fresh_server("mariadb", {"binlog_row_metadata": "NO_LOG"})
    shop = Shop(server, settings_of(address_of(server), "nameless.*", tmp_path), "NO_LOG")
    shop.run("CREATE DATABASE nameless\nCREATE TABLE nameless.a (id INT PRIMARY KEY)")
    pipeline.begin(shop.settings)
    value = "SELECT NEXTVAL(nameless.a)"
    shop.run("INSERT INTO nameless.a VALUES (1), (2)\nDROP TABLE nameless.a\nCREATE SEQUENCE nameless.a NOCACHE")
    shop.run(value if used else "SELECT 1")
    first = shop.delta()
    assert [(str(file.name), file.rows) for file in first.files] == [("nameless.a", 2)]
    assert [(one.table, one.why) for one in first.left_out] == [("nameless.a", "no statement made it")][:used]
    shop.run(value)
    second = shop.delta()
    assert (second.files, second.left_out) == ((), ())
