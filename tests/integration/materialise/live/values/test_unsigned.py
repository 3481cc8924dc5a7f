"""Columns that become UNSIGNED outside strict mode: the server sets negative values to 0, and logs no row."""

from __future__ import annotations

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


@pytest.mark.parametrize("kind", ["DECIMAL(10,2)", "FLOAT", "DOUBLE", "INT"])
def test_a_negative_value_becomes_zero(live: LiveSource, kind: str) -> None:
    live.run(f"CREATE TABLE t (id INT PRIMARY KEY, n {kind})", "INSERT INTO t VALUES (1, -5), (2, 5)")
    live.load()
    live.run("SET sql_mode = ''", f"ALTER TABLE t MODIFY n {kind} UNSIGNED", "INSERT INTO t VALUES (3, 7)")
    (result,) = live.delta().tables
    assert result.error is not None or live.warehouse_rows("t") == live.server_rows("t")
