"""Tables of other tools that are taken over: once, whatever fails, and with the same merges as loaded tables afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.load.adoption import adopt
from loader.materialise.rules import TableRule
from loader.materialise.spec import AdoptSpec, TableResult
from loader.model.table import Column, TableSchema
from loader.staging.layout import interval_folder
from tests.integration.materialise.killable import run_until
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.outage import lose_reply
from tests.integration.materialise.staged_writer import GENERATION, LOG, SOURCE, Change, number, position, table
from tests.integration.materialise.test_table_replay import replayed

pytestmark = pytest.mark.integration

ORDERS = table("orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4")], ["id"])
KEYLESS = TableSchema(ORDERS.name, ORDERS.columns, ())
ROWS = [(key, "copied") for key in range(10)]
PLACE = position(1, 1500)
BEFORE = [Change("I", number(1, 1100), key, row) for key, row in enumerate(ROWS)]
CHANGES = [
    Change("D", number(1, 1600), 0, (1, "copied")),
    Change("I", number(1, 1600), 1, (1, "changed")),
    Change("D", number(1, 1700), 0, (9, "copied")),
    Change("I", number(1, 1800), 0, (20, "new")),
]
AFTER = Counter([*ROWS[:1], (1, "changed"), *ROWS[2:9], (20, "new")])


def copied(lake: Lake, options: str = "") -> Lake:
    """Make the table as another tool would, and stage an interval around the place."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    lake.sql(f"CREATE TABLE lake.shop.orders (name string, id int NOT NULL) USING iceberg {options}")
    values = ", ".join(f"({key}, '{name}')" for key, name in ROWS)
    lake.sql(f"INSERT INTO lake.shop.orders (id, name) VALUES {values}")
    return lake


def staged(lake: Lake, schema: TableSchema) -> None:
    lake.staging.interval(position(1, 1000), position(1, 2000), [(schema, BEFORE + CHANGES)])


def spec_of(lake: Lake, schema: TableSchema = ORDERS, offset: int = 1500) -> AdoptSpec:
    return AdoptSpec(
        source=SOURCE,
        generation=GENERATION,
        staging_root=lake.staging.store.root,
        catalog=lake.catalog,
        rules=lake.rules,
        definitions=(schema.as_dict(),),
        position=position(1, offset),
        seqno=number(1, offset),
        exact_at=position(1, offset),
        exact_at_seqno=number(1, offset),
        unlogged={},
        log=LOG,
    )


def adopted(lake: Lake, schema: TableSchema = ORDERS, offset: int = 1500) -> TableResult:
    (result,) = adopt(lake.spark, spec_of(lake, schema, offset)).tables
    return result


def positions(lake: Lake) -> list[int]:
    return [applied.seqno for applied in lake.metadata(ORDERS).applied_positions()]


@pytest.mark.parametrize(
    ("options", "schema"),
    [
        ("TBLPROPERTIES ('format-version' = '3')", ORDERS),
        ("PARTITIONED BY (bucket(4, id))", KEYLESS),
        *(
            pytest.param(options, schema, marks=pytest.mark.sweep)
            for options, schema in (
                ("TBLPROPERTIES ('format-version' = '3')", KEYLESS),
                ("PARTITIONED BY (bucket(4, id))", ORDERS),
                *(
                    (options, schema)
                    for options in (
                        "PARTITIONED BY (name)",
                        "TBLPROPERTIES ('format-version' = '1', 'write.format.default' = 'orc')",
                        "TBLPROPERTIES ('write.merge.mode' = 'copy-on-write', 'write.delete.mode' = 'copy-on-write')",
                    )
                    for schema in (ORDERS, KEYLESS)
                ),
            )
        ),
    ],
)
def test_changes_after_the_place_are_applied_once(lake: Lake, options: str, schema: TableSchema) -> None:
    copied(lake, options)
    staged(lake, schema)
    assert adopted(lake, schema).status == "applied"
    assert lake.one(lake.merged()).status == "applied"
    assert lake.bag(ORDERS.name, "id", "name") == AFTER
    assert lake.one(lake.merged()).status == "already"
    assert adopted(lake, schema).status == "already"
    assert lake.bag(ORDERS.name, "id", "name") == AFTER
    assert positions(lake) == [number(1, 2000), number(1, 1500)]


def on_transaction(patch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Act once, after the head of main was read and before the commit."""
    original, left = TableMetadata.transaction, [act]

    def transaction(self: TableMetadata) -> Any:
        change = original(self)
        if left:
            left.pop()()
        return change

    patch.setattr(TableMetadata, "transaction", transaction)


def test_a_table_that_another_tool_still_writes_is_not_adopted(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(lake)
    on_transaction(monkeypatch, lambda: lake.sql("INSERT INTO lake.shop.orders (id, name) VALUES (30, 'late')"))
    result = adopted(lake)
    assert result.error is not None
    assert (result.error["error"], result.error["what"]) == (
        "RetryableError",
        "another tool committed to the table while it was adopted",
    )
    assert positions(lake) == []
    assert "loader.source" not in lake.metadata(ORDERS).properties


def test_a_lost_reply_adopts_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(lake)
    lose_reply(monkeypatch)
    assert adopted(lake).status == "applied"
    assert positions(lake) == [number(1, 1500)]


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("table.before", marks=pytest.mark.sweep),
        pytest.param("publish.before", marks=pytest.mark.sweep),
        "publish.after",
    ],
)
def test_a_killed_adoption_is_completed(lake: Lake, point: str) -> None:
    copied(lake)
    staged(lake, KEYLESS)
    assert run_until(lake.spark, point, spec_of(lake, KEYLESS), lake.folder) == -9
    assert adopted(lake, KEYLESS).status == ("already" if point == "publish.after" else "applied")
    assert lake.one(lake.merged()).status == "applied"
    assert lake.bag(ORDERS.name, "id", "name") == AFTER
    assert adopted(lake, KEYLESS).status == "already"


def test_an_adoption_elsewhere_is_refused_with_the_place(lake: Lake) -> None:
    copied(lake)
    adopted(lake)
    error = adopted(lake, offset=1400).error
    assert error is not None
    assert error["why"] == f"it was loaded or adopted at {PLACE}, not at {position(1, 1400)}"
    assert f"loader adopt --table shop.orders --at {PLACE}" in error["hint"]


def test_a_place_whose_intervals_were_purged_stops_the_table(lake: Lake) -> None:
    copied(lake)
    staged(lake, ORDERS)
    late = [Change("I", number(1, 2500), 0, (30, "late"))]
    lake.staging.interval(position(1, 2000), position(1, 3000), [(ORDERS, late)])
    folder = interval_folder(SOURCE, GENERATION, number(1, 1000))
    for info in list(lake.staging.store.list(f"{folder}/")):
        lake.staging.store.delete(info.key)
    assert adopted(lake).status == "applied"
    (result,) = lake.merged().tables
    assert result.status == "quarantined"
    assert result.error is not None
    assert result.error["error"] == "GapError"
    assert lake.bag(ORDERS.name, "id", "name") == Counter(ROWS)


def test_deletion_marks_of_another_tool(lake: Lake) -> None:
    lake.rules = (TableRule(tables=("*",), mode="soft_delete", seqno_column="", committed_at_column=""),)
    copied(lake)
    lake.sql("ALTER TABLE lake.shop.orders ADD COLUMN _is_deleted boolean")
    lake.sql("UPDATE lake.shop.orders SET _is_deleted = id = 3 WHERE id > 1")
    staged(lake, ORDERS)
    refused = adopted(lake).error
    assert refused is not None
    assert refused["what"] == "rows of the table are neither marked as deleted nor as not deleted"
    lake.sql(refused["hint"].removeprefix("in Spark: "))
    assert adopted(lake).status == "applied"
    assert lake.one(lake.merged()).status == "applied"
    marks = Counter({(*row, False): 1 for row in AFTER} | {(3, "copied", True): 1, (9, "copied", True): 1})
    marks.pop((3, "copied", False))
    assert lake.bag(ORDERS.name, "id", "name", "_is_deleted") == marks


KEYS = table(
    "orders", [Column("id", "int"), Column("name", "varchar", charset="utf8mb4"), Column("code", "binary", size=2)],
    ["id", "code"],
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "what", "why"),
    [
        ("(1, 'b', X'0A')", "rows of the table have the same key", "2 rows with (id, code) = (1, X'0a'), for example"),
        (
            "(NULL, 'b', X'0A'), (NULL, 'c', X'0A')",
            "rows of the table have NULL in their key",
            "2 rows with (id, code) = (NULL, X'0a'), for example",
        ),
        (
            "(2, 'b', NULL)",
            "rows of the table have NULL in their key",
            "1 row with (id, code) = (2, NULL), for example",
        ),
    ],
)
def test_each_key_must_be_there_once(lake: Lake, rows: str, what: str, why: str) -> None:
    lake.sql("CREATE NAMESPACE lake.shop")
    lake.sql("CREATE TABLE lake.shop.orders (id int, name string, code binary) USING iceberg")
    lake.sql(f"INSERT INTO lake.shop.orders VALUES (1, 'a', X'0A'), (1, 'a', X'0B'), (2, 'a', X'0A'), {rows}")
    before = lake.metadata(KEYS).head
    error = adopted(lake, KEYS).error
    assert error is not None
    assert (error["error"], error["what"], error["why"]) == ("DataError", what, why)
    assert lake.metadata(KEYS).head == before
    assert "loader.source" not in lake.metadata(KEYS).properties

    lake.sql("DELETE FROM lake.shop.orders WHERE name <> 'a'")
    assert adopted(lake, KEYS).status == "applied"


@pytest.mark.sweep
def test_a_replay_compares_with_log_after_the_adoption_only(lake: Lake) -> None:
    copied(lake)
    staged(lake, ORDERS)
    lake.sql("UPDATE lake.shop.orders SET name = 'restored' WHERE id = 5")
    assert adopted(lake).status == "applied"
    assert lake.one(lake.merged()).status == "applied"
    lake.sql("UPDATE lake.shop.orders SET name = 'damaged' WHERE id = 20")
    (found,) = replayed(lake, number(1, 1000), "shop.orders", publish=True).tables
    assert (found.status, found.updates) == ("published", 1)
    assert found.note == f"compared from {PLACE} on, where it was loaded"
    rows = lake.bag(ORDERS.name, "id", "name")
    assert rows == AFTER - Counter([(5, "copied")]) + Counter([(5, "restored")])
