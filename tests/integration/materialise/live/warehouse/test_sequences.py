"""Sequences of MariaDB that replace tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.materialise.live_source import live_source

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_a_sequence_that_replaces_a_table_drops_it(spark: SparkSession, mariadb_server: Any, tmp_path: Path) -> None:
    with live_source(spark, mariadb_server, tmp_path) as live:
        live.run("CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1)", "CREATE TABLE b LIKE a")
        live.load()
        live.run(
            "CREATE OR REPLACE SEQUENCE a",
            "CREATE OR REPLACE SEQUENCE a START WITH 5",
            "SELECT NEXTVAL(a)",
            "DROP SEQUENCE a",
            "CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY)",
            "CREATE OR REPLACE SEQUENCE never_a_table",
        )
        for number in (2, 3):
            live.run(f"INSERT INTO a VALUES ({number})", f"INSERT INTO b VALUES ({number})")
            assert [one.error for one in live.delta().tables if one.error] == []
            assert live.differences() == ["never_a_table"]
