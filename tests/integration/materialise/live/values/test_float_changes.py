"""FLOAT columns that become DOUBLE in the middle of an interval: the same text is another number as FLOAT than as DOUBLE."""

from __future__ import annotations

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_the_default_of_a_float_is_rounded_before_it_becomes_a_double(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    live.load()
    live.run(
        "INSERT INTO t VALUES (2)",
        "ALTER TABLE t ADD f FLOAT DEFAULT 0.1",
        "INSERT INTO t VALUES (3, 5)",
        "ALTER TABLE t MODIFY f DOUBLE DEFAULT 0.1",
        "INSERT INTO t (id) VALUES (4)",
    )
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert live.warehouse_rows("t") == live.server_rows("t")


def test_equal_texts_of_two_types_are_two_rows_of_a_table_without_a_key(live: LiveSource) -> None:
    live.run("CREATE TABLE t (f FLOAT)", "INSERT INTO t VALUES (1)")
    live.load()
    live.run("INSERT INTO t VALUES (0.1)", "ALTER TABLE t MODIFY f DOUBLE", "INSERT INTO t VALUES (0.1)")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert live.warehouse_rows("t") == live.server_rows("t")


def test_a_schema_that_comes_back_has_other_origins(live: LiveSource) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, a FLOAT, b DOUBLE)", "INSERT INTO t VALUES (1, 0.1, 0.1)")
    live.load()
    live.run(
        "INSERT INTO t VALUES (2, 0.1, 0.1)",
        "ALTER TABLE t DROP b, CHANGE a b DOUBLE, ADD a FLOAT AFTER id",
        "INSERT INTO t VALUES (3, 0.5, 0.1)",
    )
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert live.warehouse_rows("t") == live.server_rows("t")
