"""A table with as many columns as InnoDB allows, on real servers: loaded by kernels, merged, compared from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from tests.e2e.loaded import Loaded, loaded
from tests.support.replicas import run

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.sweep,
]

MOST = 1017
TYPES = ("INT", "VARCHAR(3) CHARACTER SET latin1", "DATETIME(6)", "DOUBLE", "DATE", "DECIMAL(5,2)")
VALUES = ("7", "'a,b'", "'2026-01-02 03:04:05.000006'", "1.5", "'2026-01-02'", "-3.25")
NAMES = [f"c{n}" for n in range(1, MOST)]
COLUMNS = ", ".join(f"{name} {TYPES[n % len(TYPES)]}" for n, name in enumerate(NAMES))
ROW = ", ".join(VALUES[n % len(VALUES)] for n in range(len(NAMES)))
BEFORE = f"""
CREATE DATABASE shop
CREATE TABLE shop.wide (id INT PRIMARY KEY, {COLUMNS})
INSERT INTO shop.wide VALUES (1, {ROW}), (2, {ROW}), (3, {ROW})
"""
CHANGES = (
    "UPDATE shop.wide SET c1 = 8, c1016 = NULL, c500 = NULL WHERE id = 1",
    "UPDATE shop.wide SET id = 9 WHERE id = 2",
    "DELETE FROM shop.wide WHERE id = 3",
    f"INSERT INTO shop.wide VALUES (4, {ROW})",
)


def in_warehouse(shop: Loaded) -> list[tuple[Any, ...]]:
    files = (shop.home / "warehouse" / "shop" / "wide" / "metadata").glob("v*.metadata.json")
    newest = max(files, key=lambda path: int(path.name[1:].partition(".")[0]))
    rows = StaticTable.from_metadata(str(newest)).scan().to_arrow().select(["id", *NAMES]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def on_server(shop: Loaded) -> list[tuple[Any, ...]]:
    return run(shop.server, "SELECT * FROM shop.wide ORDER BY id")


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_every_column_is_loaded_and_merged(kind: str, tmp_path: Path, jars: str) -> None:
    with loaded(kind, "FULL", BEFORE, tmp_path, jars) as shop:
        assert in_warehouse(shop) == on_server(shop)
        shop.execute(*CHANGES)
        (result,) = shop.json("run")["materialise"]["tables"]
        assert (result["table"], result["status"]) == ("shop.wide", "applied")
        rows = in_warehouse(shop)
        assert rows == on_server(shop)
        assert ([row[0] for row in rows], {len(row) for row in rows}) == ([1, 4, 9], {MOST})
