"""Columns with names that Iceberg and the loader need: loaded, changed, altered, replayed, verified, read from outside."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from tests.e2e.loaded import Loaded, loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

BEFORE = """
CREATE DATABASE shop
CREATE TABLE shop.taken (id INT, _file VARCHAR(9), __file INT, _deleted DATE, _SEQNO INT, PRIMARY KEY (id))
CREATE TABLE shop.bag (_spec_id INT, _loader_x VARCHAR(9))
INSERT INTO shop.taken VALUES (1, 'one', 11, '2024-01-01', 1), (2, 'two', 22, NULL, 2), (3, NULL, NULL, NULL, 3)
INSERT INTO shop.bag VALUES (1, 'a'), (1, 'a'), (2, 'b')
"""
CHANGES = (
    "INSERT INTO shop.taken VALUES (4, 'four', 44, '2024-04-04', 4)",
    "UPDATE shop.taken SET _file = 'uno', __file = NULL WHERE id = 1",
    "UPDATE shop.taken SET id = 9 WHERE id = 3",
    "DELETE FROM shop.taken WHERE id = 2",
    "DELETE FROM shop.bag WHERE _spec_id = 1 LIMIT 1",
    "UPDATE shop.bag SET _loader_x = 'c' WHERE _spec_id = 2",
)
ALTERED = (
    "UPDATE shop.taken SET _deleted = '2024-05-05' WHERE id = 4",
    "ALTER TABLE shop.taken RENAME COLUMN _file TO a",
    "UPDATE shop.taken SET a = 'vier' WHERE id = 4",
    "ALTER TABLE shop.taken ADD _pos INT NOT NULL DEFAULT 7 AFTER id, RENAME COLUMN __file TO _file",
    "INSERT INTO shop.taken VALUES (5, 8, 'five', 55, NULL, 5)",
    "ALTER TABLE shop.bag ADD _partition INT DEFAULT 3",
    "INSERT INTO shop.bag VALUES (4, 'd', 4)",
)


def in_warehouse(shop: Loaded, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns of a table, and its rows without the loader's columns, which are the last two."""
    files = (shop.home / "warehouse" / "shop" / table / "metadata").glob("v*.metadata.json")
    newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]))
    found = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    return found.column_names, sorted((tuple(row.values())[:-2] for row in found.to_pylist()), key=repr)


def test_every_stage_maps_them(tmp_path: Path, jars: str) -> None:
    with loaded("mysql", "FULL", BEFORE, tmp_path, jars) as shop:
        names = ["id", "__file", "___file", "__deleted", "__SEQNO", "_seqno", "_committed_at"]
        rows = [(1, "one", 11, date(2024, 1, 1), 1), (2, "two", 22, None, 2), (3, None, None, None, 3)]
        assert in_warehouse(shop, "taken") == (names, rows)
        shop.execute(*CHANGES)
        shop.json("run")
        rows = [(1, "uno", None, date(2024, 1, 1), 1), (4, "four", 44, date(2024, 4, 4), 4)]
        assert in_warehouse(shop, "taken") == (names, [*rows, (9, None, None, None, 3)])
        _check(shop)
        shop.execute(*ALTERED)
        shop.json("run")
        names = ["id", "__pos", "a", "__file", "__deleted", "__SEQNO", "_seqno", "_committed_at"]
        assert in_warehouse(shop, "taken") == (names, [
            (1, 7, "uno", None, date(2024, 1, 1), 1), (4, 7, "vier", 44, date(2024, 5, 5), 4),
            (5, 8, "five", 55, None, 5), (9, 7, None, None, None, 3),
        ])  # fmt: skip
        names = ["__spec_id", "__loader_x", "__partition", "_seqno", "_committed_at"]
        assert in_warehouse(shop, "bag") == (names, [(1, "a", 3), (2, "c", 3), (4, "d", 4)])
        _check(shop)


def _check(shop: Loaded) -> None:
    """Compare with the server, by each comparison there is, and with the log."""
    tables = ("shop.taken", "shop.bag")
    assert shop.differences(tables) == dict.fromkeys(tables, 0)
    assert {one["table"]: one["status"] for one in shop.json("verify")["tables"]} == dict.fromkeys(tables, "equal")
    (replayed,) = shop.json("replay", "--from", "binlog.000001:4", "--table", "shop.taken")["tables"]
    assert replayed["status"] == "same"
