"""Tables without a primary key that have a unique key with a virtual column. MySQL does not use it as the key."""

from __future__ import annotations

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("more", ["", ", UNIQUE KEY z (n)"])
def test_a_unique_key_with_a_virtual_column_is_no_key(live: LiveSource, more: str) -> None:
    if live.server.kind == "mariadb":
        pytest.skip("MariaDB has no virtual columns that are NOT NULL")
    live.run(
        f"CREATE TABLE t (n INT NOT NULL, k INT AS (n + 1) VIRTUAL NOT NULL, v INT, UNIQUE KEY a (k){more})",
        "INSERT INTO t (n, v) VALUES (1, 1), (2, 2)",
    )
    live.load()
    live.run("UPDATE t SET v = 3 WHERE n = 1", "INSERT INTO t (n, v) VALUES (3, 3)", "DELETE FROM t WHERE n = 2")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert live.differences() == []
