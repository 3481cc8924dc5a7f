"""Tables that an operator rolls back in the warehouse to a snapshot from before a column changed its name.

A rollback moves main and leaves the columns as they are now. docs/runbook.md says that the table continues from there.
"""

from __future__ import annotations

from collections import Counter

import pytest

from loader.materialise.iceberg.warehouse import Warehouse
from loader.model.table import TableName
from tests.integration.materialise.live_source import LiveSource

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

RENAMES = ["RENAME COLUMN a TO c", "RENAME COLUMN a TO b, RENAME COLUMN b TO a", "DROP b, RENAME COLUMN a TO b"]


@pytest.mark.parametrize("action", RENAMES)
def test_a_rollback_over_a_renamed_column(live: LiveSource, action: str) -> None:
    live.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "INSERT INTO t VALUES (1, 10, 20)")
    live.load()
    warehouse, name = Warehouse(live.spark, live.settings.catalog), TableName(live.database, "t")
    metadata = warehouse.metadata(name)
    assert metadata is not None
    live.run(f"ALTER TABLE t {action}")
    assert live.statuses(live.delta()) == {"t": "applied"}
    assert live.differences() == []
    catalog = live.settings.catalog.name
    warehouse.session.sql(f"CALL `{catalog}`.system.rollback_to_snapshot('{live.database}.t', {metadata.head})")
    live.run(
        "UPDATE t SET id = 2 WHERE id = 2", "CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)"
    )
    found = {result.table.partition(".")[2]: result for result in live.delta().tables}["t"]
    assert found.error
    assert found.error["what"] == "columns of the warehouse's table have other names than at its applied position"
    live.load_again("t")
    live.run("INSERT INTO t (id) VALUES (3)")
    assert live.statuses(live.delta())["t"] == "applied"
    names = sorted(str(row[0]) for row in live.run("SHOW COLUMNS FROM t"))
    rows = warehouse.session.sql(f"SELECT {', '.join(names)} FROM {warehouse.name(name)}").collect()
    assert Counter(map(tuple, rows)) == live.server_rows("t")
