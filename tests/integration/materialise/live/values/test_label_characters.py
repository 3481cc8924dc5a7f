"""Labels of ENUM and SET with characters beyond U+FFFF: information_schema shows them as `?`."""

from __future__ import annotations

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration


def test_labels_come_from_the_log(live: LiveSource) -> None:
    live.run(
        "SET NAMES utf8mb4",
        "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('👍', 'no', '?'), s SET('a👍', 'b') CHARACTER SET utf8mb4)",
        "INSERT INTO t VALUES (1, '👍', 'a👍'), (2, 'no', 'b')",
    )
    assert not live.load().exit_code
    live.run("SET NAMES utf8mb4", "INSERT INTO t VALUES (3, '👍', 'a👍,b'), (4, '?', '')", "DELETE FROM t WHERE id = 2")
    assert not live.delta().exit_code
    rows = live.warehouse_rows("t")
    assert rows == {("👍", 1, "a👍"): 1, ("👍", 3, "a👍,b"): 1, ("?", 4, ""): 1}
