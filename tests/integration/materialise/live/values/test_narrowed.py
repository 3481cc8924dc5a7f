"""Tables whose columns are narrower on the server than in the warehouse, since Iceberg never narrows a column."""

from __future__ import annotations

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


def rows(source: LiveSource) -> list[tuple[float, int]]:
    return sorted((float(one), int(other)) for one, other in source.run("SELECT CAST(c AS DOUBLE), n FROM t"))


def warehouse(source: LiveSource) -> list[tuple[float, int]]:
    return sorted((source.warehouse_rows("t") or {}).keys())


@pytest.mark.sweep
@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (c)"])
def test_a_float_where_the_table_of_the_same_name_had_a_double(live: LiveSource, key: str) -> None:
    live.run("CREATE TABLE t (c DOUBLE, n INT)", "INSERT INTO t VALUES (0.1, 1)")
    live.load()
    live.run("DROP TABLE t", f"CREATE TABLE t (c FLOAT, n INT{key})", "INSERT INTO t VALUES (0.1, 1), (0.2, 2), (3, 3)")
    live.delta()
    assert warehouse(live) == rows(live)
    live.run("DELETE FROM t WHERE n = 1", "UPDATE t SET n = 4 WHERE n = 2")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert warehouse(live) == rows(live)
    live.load_again("t")
    live.run("UPDATE t SET n = 5 WHERE n = 4", "INSERT INTO t VALUES (0.7, 6)")
    live.delta()
    live.run("DELETE FROM t WHERE n > 4")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert warehouse(live) == rows(live) == [(3.0, 3)]


@pytest.mark.parametrize(("wide", "narrow"), [("DECIMAL(20,0)", "DECIMAL(5,0)"), ("BIGINT", "INT")])
def test_rows_without_a_key_are_found_in_wider_columns(live: LiveSource, wide: str, narrow: str) -> None:
    live.run(f"CREATE TABLE t (c {wide}, n INT)", "INSERT INTO t VALUES (1, 1)")
    live.load()
    live.run("DROP TABLE t", f"CREATE TABLE t (c {narrow}, n INT)", "INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)")
    live.delta()
    live.run("DELETE FROM t WHERE n = 1 LIMIT 1", "UPDATE t SET c = 99999 WHERE n = 2")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert warehouse(live) == rows(live) == [(1, 1), (99999, 2)]
