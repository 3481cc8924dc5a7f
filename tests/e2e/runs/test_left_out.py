"""A log without names of columns that does not tell a table's key stops that table alone, and each way on works."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.loaded import Loaded, loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

BEFORE = """
CREATE DATABASE shop
CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20))
CREATE TABLE shop.filled (id INT PRIMARY KEY, code INT NOT NULL, UNIQUE (code))
CREATE TABLE shop.reloaded LIKE shop.filled
INSERT INTO shop.orders VALUES (1,'one'),(2,'two')
INSERT INTO shop.filled VALUES (1,10)
INSERT INTO shop.reloaded VALUES (1,10)
"""
LOST = """
SET SESSION sql_mode = @@GLOBAL.sql_mode
INSERT INTO shop.filled VALUES (2,20)
INSERT INTO shop.reloaded VALUES (2,20)
ALTER TABLE shop.filled DROP PRIMARY KEY
ALTER TABLE shop.reloaded DROP PRIMARY KEY
INSERT INTO shop.orders VALUES (3,'three')
INSERT INTO shop.filled VALUES (3,30)
INSERT INTO shop.reloaded VALUES (3,30)
DELETE FROM shop.orders WHERE id = 1
"""
TOLD_AGAIN = """
SET SESSION sql_mode = @@GLOBAL.sql_mode
UPDATE shop.filled SET id = 4 WHERE code = 30
UPDATE shop.reloaded SET id = 4 WHERE code = 30
ALTER TABLE shop.filled ADD PRIMARY KEY (id)
ALTER TABLE shop.reloaded ADD PRIMARY KEY (id)
INSERT INTO shop.filled VALUES (5,50)
INSERT INTO shop.reloaded VALUES (5,50)
UPDATE shop.orders SET name = 'zwei' WHERE id = 2
"""
TABLES = ("shop.filled", "shop.orders", "shop.reloaded")
SERVERS = [("mysql", "MINIMAL"), ("mariadb", "NO_LOG")]
STATEMENT = "a unique key may be its key now: ALTER TABLE shop.filled DROP PRIMARY KEY"


@pytest.fixture(params=SERVERS, ids="-".join)
def shop(request: pytest.FixtureRequest, tmp_path: Path, jars: str) -> Iterator[Loaded]:
    with loaded(*request.param, BEFORE, tmp_path, jars) as found:
        yield found


def statuses(document: dict) -> dict[str, str]:
    return {table["table"].removeprefix("shop."): table["status"] for table in document["materialise"]["tables"]}


def commands(error: dict) -> list[list[str]]:
    """The commands of the hint, in their order."""
    found = re.findall(r"loader ((?:schema set|extract|initial-load|release) [^;(]+)", error["hint"])
    return [shlex.split(text) for text in found]


@pytest.mark.timeout(900)
def test_a_table_that_the_log_does_not_tell_stops_alone_and_goes_on_once_it_is_said(shop: Loaded) -> None:
    begun = shop.json("status")["applied"]
    shop.execute(*LOST.strip().splitlines())
    first = shop.json("run", code=4)
    assert statuses(first) == {"orders": "applied", "filled": "quarantined", "reloaded": "quarantined"}
    assert [one["table"] for one in first["extracts"][0]["left_out"]] == ["shop.filled", "shop.reloaded"]
    # Two of three rows are there: that of the load, and the one of before the statement.
    assert shop.differences(TABLES) == {"shop.orders": 0, "shop.filled": 1, "shop.reloaded": 1}
    snapshots = shop.snapshots()
    shop.execute(*TOLD_AGAIN.strip().splitlines())
    second = shop.json("run", code=4)
    assert statuses(second) == {"orders": "applied", "filled": "quarantined", "reloaded": "quarantined"}
    assert shop.snapshots() | {"orders": []} == snapshots | {"orders": []}
    listed = shop.json("intervals")
    assert [one["left_out"] for one in listed[:2]] == [["shop.filled", "shop.reloaded"]] * 2
    assert {one["state"] for one in listed[:2]} == {"staged"}
    stopped = {one["table"]: one["error"] for one in shop.json("status")["quarantined"]}
    assert stopped["shop.filled"]["why"] == STATEMENT

    _fill(shop, stopped["shop.filled"])
    third = shop.json("run", code=4)
    assert statuses(third)["filled"] == "applied"
    assert shop.differences(TABLES) == {"shop.orders": 0, "shop.filled": 0, "shop.reloaded": 2}

    reload = commands(stopped["shop.reloaded"])[2]
    assert reload == ["initial-load", "--table", "shop.reloaded", "--again"]
    shop.json(*reload)
    shop.execute("INSERT INTO shop.reloaded VALUES (6,60)", "INSERT INTO shop.filled VALUES (6,60)")
    last = shop.json("run")
    assert statuses(last) | {"orders": ""} == {"orders": "", "filled": "applied", "reloaded": "applied"}
    assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)
    assert shop.json("status")["quarantined"] == []

    replayed = shop.json("replay", "--from", begun, code=4)
    found = {table["table"]: table for table in replayed["tables"]}
    assert {name: table["status"] for name, table in found.items()} == {
        "shop.orders": "same", "shop.filled": "failed", "shop.reloaded": "same",
    }  # fmt: skip
    assert "key changed since" in found["shop.filled"]["error"]["what"]
    assert found["shop.reloaded"]["note"].endswith(" on, where it was loaded")
    since = listed[1]["stop"]
    replayed = shop.json("replay", "--from", since)
    assert {table["status"] for table in replayed["tables"]} == {"same"}


def _fill(shop: Loaded, error: dict) -> None:
    """What the hint says, command by command."""
    set_schema, extract, _ = commands(error)
    at = set_schema[set_schema.index("--at") + 1]
    shown = shop.json("schema", "show", "shop.filled", "--at", at)
    definition = {**shown["definition"], "key": ["code"]}
    text = json.dumps({**shown, "definition": definition, "primary": False, "sure": True, "why": ""})
    (shop.home / "FILE").write_text(text)
    shop.json(*set_schema)
    filled = shop.json(*extract)
    assert (filled["status"], [one["table"] for one in filled["left_out"]]) == ("staged", ["shop.reloaded"])
    assert shop.json("staged", "compare", str(filled["start_seqno"]))["differences"] == []
    shop.json("release", "shop.filled")


@pytest.mark.timeout(900)
def test_a_row_that_cannot_be_staged_stops_its_table_and_the_printed_cure_gets_past_it(
    tmp_path: Path, jars: str
) -> None:
    # MariaDB writes whole images of tables without a key.
    tables = ("shop.keyless", "shop.orders")
    before = (
        "CREATE DATABASE shop\nCREATE TABLE shop.orders (id INT PRIMARY KEY)\nCREATE TABLE shop.keyless (a INT, b TEXT)"
    )
    with loaded("mysql", "FULL", f"{before}\nINSERT INTO shop.keyless VALUES (1,'one')", tmp_path, jars) as shop:
        shop.execute(
            "SET SESSION binlog_row_image = NOBLOB", "INSERT INTO shop.keyless (a) VALUES (2)",
            "SET SESSION binlog_row_image = FULL", "INSERT INTO shop.orders VALUES (2)",
        )  # fmt: skip
        for _ in range(2):
            shop.json("run", code=4)
            assert shop.differences(tables) == {"shop.keyless": 1, "shop.orders": 0}
        (stopped,) = shop.json("status")["quarantined"]
        (command,) = re.findall(r"loader (initial-load [^;(]+)", stopped["error"]["hint"])
        shop.json(*shlex.split(command))
        shop.execute("INSERT INTO shop.keyless VALUES (3,'three')", "INSERT INTO shop.orders VALUES (3)")
        shop.json("run")
        assert shop.differences(tables) == dict.fromkeys(tables, 0)
        assert shop.json("status")["quarantined"] == []
