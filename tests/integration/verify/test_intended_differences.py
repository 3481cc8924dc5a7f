"""Tables that the warehouse keeps otherwise than the source by intention: they are equal, and a wrong row is found."""

from __future__ import annotations

import pytest

from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.rules import TableRule
from loader.model.table import TableName
from tests.integration.materialise.live_source import LiveSource
from tests.integration.verify.verified import verified

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]

RULES = (
    TableRule(tables=("*.soft",), mode="soft_delete", deleted_column="gone"),
    TableRule(tables=("*.kept",), on_drop="keep"),
    TableRule(tables=("*",), on_misfit="text"),
)
ODD = "odd %{0} näme"
TABLES = {
    "soft": "id INT PRIMARY KEY, n INT",
    "kept": "id INT PRIMARY KEY, n INT, d DATE",
    "altered": "id INT PRIMARY KEY, a DATE, b DATE, c INT",
    "mapped": "_seqno DATE, _Committed_At DATETIME(2), `_file` INT, _op VARCHAR(9), id INT PRIMARY KEY",
    f"`{ODD}`": "`i.d` INT PRIMARY KEY, `a``b` DATE, `50 %s` DATETIME, `{x}` VARBINARY(9), `it's` BIT(9), `Ünï` DATE",
    "`Mixed`": "ID VARBINARY(3) PRIMARY KEY, `Day` DATE",
}
LOADED = {
    "soft": "(1, 1), (2, 2), (3, 3)",
    "kept": "(1, 1, '2024-01-01'), (2, 2, NULL)",
    "altered": "(1, '0000-00-00', '2024-01-01', 1), (2, NULL, '2024-02-30', 2)",
    "mapped": "('0000-00-00', '2024-02-30 00:00:00', 1, 'x', 1), ('2024-01-01', NULL, 2, 'y', 2)",
    f"`{ODD}`": "(1, '2024-00-01', '0000-00-00 00:00:00', X'00FF', b'101', '2024-01-01')",
    "`Mixed`": "(X'00', '0000-00-00'), (X'FF00', '2024-01-01')",
}
CHANGES = (
    "DELETE FROM soft WHERE id IN (1, 2)",
    "INSERT INTO soft VALUES (2, 20)",
    "ALTER TABLE kept DROP COLUMN n",
    "UPDATE kept SET d = '2024-01-02' WHERE id = 2",
    "ALTER TABLE kept ADD COLUMN n INT",
    "UPDATE kept SET n = 7 WHERE id = 2",
    "ALTER TABLE altered RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD COLUMN added DATE NOT NULL",
    "UPDATE altered SET c = 3 WHERE id = 1",
    "UPDATE mapped SET _op = 'z' WHERE id = 1",
    f"UPDATE `{ODD}` SET `Ünï` = '2024-11-31'",
    "UPDATE `Mixed` SET `Day` = '2024-02-29' WHERE ID = X'00'",
)


def test_intended_differences_are_equal(live: LiveSource) -> None:
    live.settings = live.settings.model_copy(update={"rules": RULES})
    lenient = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'"
    live.run(lenient, *(f"CREATE TABLE {name} ({columns}) CHARACTER SET utf8mb4" for name, columns in TABLES.items()))
    live.run(lenient, *(f"INSERT INTO {name} VALUES {rows}" for name, rows in LOADED.items()))
    live.load()
    live.run(lenient, *CHANGES)
    found = {one.table: one.error or one.samples or one.status for one in verified(live.spark, live.settings).tables}
    names = [name.strip("`") for name in TABLES]
    assert found == {str(TableName(live.database, name)): "equal" for name in names}

    warehouse = Warehouse(live.spark, live.settings.catalog)
    for name, change in {
        "soft": "gone = true WHERE id = 3",
        "mapped": "__seqno__text = '0000-00-01' WHERE id = 1",
        ODD: "`Ünï__text` = NULL",
        "altered": "added__text = '0000-00-01' WHERE id = 2",
    }.items():
        warehouse.session.sql(f"UPDATE {warehouse.name(TableName(live.database, name))} SET {change}")
    wrong = {one.table.partition(".")[2]: one.differences for one in verified(live.spark, live.settings).tables}
    assert wrong == {"soft": 1, "kept": 0, "altered": 2, "mapped": 2, ODD: 2, "Mixed": 0}
