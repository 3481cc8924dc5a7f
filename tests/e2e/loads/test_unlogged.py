"""A statement that the log has instead of rows, and rows that it takes back: their tables stop, and the cures work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.loaded import Loaded, loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

BEFORE = """
CREATE DATABASE shop
CREATE DATABASE aside
CREATE TABLE shop.a (id INT PRIMARY KEY, n INT)
CREATE TABLE shop.b (id INT PRIMARY KEY, n INT)
CREATE TABLE shop.c (id INT PRIMARY KEY, n INT)
CREATE TABLE shop.m (id INT PRIMARY KEY) ENGINE=MyISAM
CREATE TABLE aside.audited (id INT PRIMARY KEY)
CREATE TRIGGER aside.t AFTER INSERT ON aside.audited FOR EACH ROW INSERT INTO shop.c VALUES (NEW.id, 0)
INSERT INTO shop.a VALUES (1,1)
INSERT INTO shop.b VALUES (1,1)
INSERT INTO shop.c VALUES (1,1)
"""
TABLES = ("shop.a", "shop.b", "shop.c", "shop.m")
BY_STATEMENT, BY_ROW = "SET SESSION binlog_format = STATEMENT", "SET SESSION binlog_format = ROW"
ONE_TABLE = {
    "mysql": (BY_STATEMENT, "UPDATE shop.a SET n = 7", BY_ROW),
    "mariadb": (
        "BEGIN", "INSERT INTO shop.b VALUES (10,10)", "SAVEPOINT s", "INSERT INTO shop.a VALUES (10,10)",
        "INSERT INTO shop.m VALUES (10)", "ROLLBACK TO s", "COMMIT",
    ),
}  # fmt: skip


def statuses(document: dict) -> dict[str, str]:
    return {table["table"].removeprefix("shop."): table["status"] for table in document["materialise"]["tables"]}


def cured(shop: Loaded) -> None:
    """Run the command in each error of a quarantined table, as it is printed."""
    for one in shop.json("status")["quarantined"]:
        (command,) = re.findall(r"loader (initial-load [^;(]+)", one["error"]["hint"])
        shop.json(*shlex.split(command))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_tables_concerned_stop_and_the_printed_cure_gets_past_the_interval(
    kind: str, tmp_path: Path, jars: str
) -> None:
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        shop.execute("GRANT SELECT, TRIGGER ON *.* TO loader")
        shop.execute("INSERT INTO shop.a VALUES (2,2)", "INSERT INTO shop.c VALUES (2,2)")
        shop.execute(*ONE_TABLE[kind])
        shop.execute("INSERT INTO shop.c VALUES (3,3)", "INSERT INTO shop.m VALUES (3)")
        concerned = {"a"} if kind == "mysql" else {"a", "b"}
        first = statuses(shop.json("run", code=4))
        assert {name for name, status in first.items() if status == "quarantined"} == concerned
        cured(shop)
        shop.execute("INSERT INTO shop.a VALUES (6,6)", "INSERT INTO shop.c VALUES (6,6)")
        assert statuses(shop.json("run"))["a"] == "applied"
        assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)
        assert shop.json("status")["quarantined"] == []


@pytest.mark.timeout(1800)
def test_a_statement_that_may_have_changed_any_table_stops_all_and_the_printed_cures_work(
    tmp_path: Path, jars: str
) -> None:
    with loaded("mysql", "FULL", BEFORE, tmp_path, jars) as shop:
        shop.execute(BY_STATEMENT, "INSERT INTO aside.audited VALUES (100)", BY_ROW, "INSERT INTO shop.b VALUES (7,7)")
        assert set(statuses(shop.json("run", code=4)).values()) == {"quarantined"}
        cured(shop)
        shop.execute("INSERT INTO shop.c VALUES (8,8)", "INSERT INTO shop.b VALUES (8,8)")
        last = statuses(shop.json("run"))
        assert (last["b"], last["c"]) == ("applied", "applied")
        assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)
        assert shop.json("status")["quarantined"] == []
