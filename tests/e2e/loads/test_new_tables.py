"""Commands for tables that do not follow every run: new tables, paused tables, and tables that are merged less often."""

from __future__ import annotations

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
CREATE DATABASE other
CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(20))
CREATE TABLE shop.log (n INT)
CREATE TABLE other.x LIKE shop.orders
INSERT INTO other.x VALUES (1,'one')
INSERT INTO shop.orders VALUES (1,'one')
"""
RULE = """
[[sources.shop.rules]]
tables = ["shop.log"]
every = "3650d"
"""


@pytest.fixture(params=["mysql", "mariadb"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, jars: str) -> Iterator[Loaded]:
    with loaded(request.param, "FULL", BEFORE, tmp_path, jars) as found:
        yield found


def statuses(document: dict) -> dict[str, str]:
    return {table["table"].removeprefix("shop."): table["status"] for table in document["materialise"]["tables"]}


@pytest.mark.timeout(900)
def test_new_paused_and_slow_tables(shop: Loaded) -> None:
    with shop.config.open("a", encoding="utf-8") as config:
        config.write(RULE)
    text = shop.config.read_text()
    shop.config.write_text(text.replace('tables.include = ["shop.*"]', 'tables.include = ["shop.*"]\nauto_load = true'))
    shop.execute("INSERT INTO shop.orders VALUES (2,'two')", "INSERT INTO shop.log VALUES (1)")
    assert statuses(shop.json("run")) == {"orders": "applied", "log": "not_due"}

    shop.json("pause", "shop.ord*", "--reason", "disk full")
    shop.execute("RENAME TABLE other.x TO shop.x", "INSERT INTO shop.x VALUES (2,'two')", "DELETE FROM shop.orders")
    done = shop.json("run")
    assert [(one["table"], one["action"]) for one in done["unloaded"]] == [("shop.x", "load")]
    assert statuses(done) == {"log": "not_due", "orders": "paused", "x": "applied"}
    assert shop.differences(("shop.orders", "shop.log", "shop.x")) == {"shop.orders": 2, "shop.log": 1, "shop.x": 0}

    shown = shop.loader("status").stdout
    assert "disk full" in shown
    assert "all tables but the postponed ones" in " ".join(shown.split())
    assert "merged every 3650d" in shown
    purged = " ".join(shop.loader("purge", "--older-than", "0h").stdout.split())
    assert "shop.orders is postponed, see loader status: 1 files" in purged
    verified = shop.loader("verify")
    assert verified.returncode == 2
    assert "loader resume shop.orders" in verified.stdout + verified.stderr
    assert shop.differences(("shop.log", "shop.x")) == {"shop.log": 0, "shop.x": 0}  # a verification merges all tables

    assert "resumed shop.orders" in shop.loader("resume", "shop.*").stdout
    shop.execute("UPDATE shop.x SET name = 'zwei' WHERE id = 2", "INSERT INTO shop.log VALUES (2)")
    assert statuses(shop.json("run", "--now")) == dict.fromkeys(("log", "orders", "x"), "applied")
    assert shop.differences(("shop.orders", "shop.log", "shop.x")) == dict.fromkeys(
        ("shop.orders", "shop.log", "shop.x"), 0
    )
    assert shop.json("run")["unloaded"] == []
