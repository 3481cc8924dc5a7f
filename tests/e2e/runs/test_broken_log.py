"""A log that does not go on, or cannot be read: the printed command loads all tables again, and the source goes on."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from infra.servers.process import wait_until
from loader.transport.server.connection import connected, log_sizes
from tests.e2e.loaded import Loaded, loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

BEFORE = """
CREATE DATABASE shop
CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT)
CREATE TABLE shop.keyless (a INT)
CREATE TABLE shop.gone (id INT PRIMARY KEY)
INSERT INTO shop.orders VALUES (1,1),(2,2)
INSERT INTO shop.keyless VALUES (1),(1)
INSERT INTO shop.gone VALUES (1)
"""
TABLES = ("shop.keyless", "shop.orders")


def write(shop: Loaded, *numbers: int) -> None:
    for number in numbers:
        shop.execute(f"INSERT INTO shop.orders VALUES ({number},0)", f"INSERT INTO shop.keyless VALUES ({number})")


def broken_by_a_reset(shop: Loaded) -> None:
    shop.execute("RESET BINARY LOGS AND GTIDS" if shop.server.kind == "mysql" else "RESET MASTER")


def broken_by_a_purge(shop: Loaded) -> None:
    """An interval is planned, and its log is purged before it is staged."""
    shop.json("plan")

    def purged() -> bool:
        shop.execute("FLUSH BINARY LOGS")
        with connected(shop.address) as connection:
            newest = list(log_sizes(connection))[-1]
        shop.execute(f"PURGE BINARY LOGS TO '{newest}'")
        with connected(shop.address) as connection:
            return next(iter(log_sizes(connection))) == newest

    assert wait_until(purged, 60)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
@pytest.mark.parametrize("broken", [broken_by_a_reset, broken_by_a_purge], ids=["reset", "purge"])
def test_the_printed_command_gets_past_it(kind: str, broken: object, tmp_path: Path, jars: str) -> None:
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        write(shop, 3)
        shop.json("run")
        write(shop, 4)
        assert callable(broken)
        broken(shop)
        write(shop, 5)
        shop.execute("DELETE FROM shop.orders WHERE id = 1", "DROP TABLE shop.gone")
        for _ in range(2):
            failed = shop.loader("run")
            assert failed.returncode in {3, 4}, failed.stderr
        (command,) = re.findall(r"loader (initial-load [a-z-]+)", failed.stderr)
        assert command == "initial-load --again"
        for _ in range(2):
            shop.json(*shlex.split(command))
        write(shop, 6)
        shop.execute("UPDATE shop.orders SET n = n + 1")
        done = shop.loader("run")
        assert done.returncode == 0, done.stderr
        assert shop.differences(TABLES) == dict.fromkeys(TABLES, 0)
        assert shop.json("status")["quarantined"] == []
