"""A history whose table changes while its initial load reads it: each change is in the history once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from loader.initial_load import whole_table
from loader.materialise.rules import TableRule
from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

CHANGES = ("INSERT INTO a VALUES (3, 1)", "UPDATE a SET n = 2 WHERE id = 1", "DELETE FROM a WHERE id = 2")


def test_each_change_is_once_in_the_history(live: LiveSource, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = TableRule(tables=(f"{live.database}.a",), mode="history")
    live.settings = live.settings.model_copy(update={"rules": (rule,)})
    live.run("CREATE TABLE a (id INT PRIMARY KEY, n INT)", "INSERT INTO a VALUES (1, 1), (2, 1)")
    read = whole_table.stage_chunk

    def read_after_changes(*given: Any) -> Any:
        live.run(*CHANGES)
        return read(*given)

    monkeypatch.setattr(whole_table, "stage_chunk", read_after_changes)
    live.load()
    live.delta()
    rows = live.warehouse_rows("a")
    assert rows is not None
    names = sorted(("id", "n", "_op", "_row_offset"))
    found = Counter((one["id"], one["_op"], one["n"]) for row in rows for one in [dict(zip(names, row, strict=True))])
    # The rows at the position of the load as inserts, then the three changes.
    assert found == Counter([(1, "I", 1), (2, "I", 1), (3, "I", 1), (1, "U", 2), (2, "D", 1)])
