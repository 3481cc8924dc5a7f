"""Statements of the log: barriers, statements that stop the interval, statements that may be passed over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loader.binlog.events.statement import LogStatement, read_query
from loader.errors import DataError
from loader.extract.ddl import barriers
from loader.extract.ddl.barriers import find_barriers
from loader.materialise.plan.ddl_events import writes_rows
from loader.model.identity import Identity
from loader.schema.statements import Effect, effect
from loader.staging.documents import Barrier, Plan, Skip, TableFilter
from tests.unit.binlog.builder import LogBuilder

ANSI = 4
SHOP = TableFilter(include=("shop.*",), exclude=("shop.secret",))
STOP = "binlog.000001:5000"
PLAN = Plan(
    source="shop", generation="0001", identity=Identity(kind="mysql", version="9", server_id=1, uuid="u"),
    start="binlog.000001:4", stop=STOP, shift=0, tables=SHOP, side_effects=("v",), side_effects_of_writes=("audited",),
    side_effects_at=STOP,
)  # fmt: skip
BLIND = PLAN.model_copy(update={"side_effects": (), "side_effects_of_writes": (), "side_effects_at": ""})


def statement(
    text: str, seqno: int = 7, position: str = "binlog.000001:99", database: str = "shop", *, rows: bool = False
) -> LogStatement:
    return LogStatement(seqno, position, database, text, ANSI, False, rows)


def tables(text: str, database: str = "shop") -> list[tuple[str, ...]]:
    """The tables of each barrier that a statement makes."""
    return [barrier.tables for barrier in find_barriers([statement(text, database=database)], PLAN)]


def test_a_barrier_carries_seqno_position_statement_and_tables() -> None:
    assert find_barriers([statement("TRUNCATE orders")], PLAN) == (
        Barrier(
            seqno=7,
            position="binlog.000001:99",
            statement="TRUNCATE orders",
            database="shop",
            sql_mode=ANSI,
            mariadb=False,
            tables=("shop.orders",),
        ),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALTER TABLE orders ADD x INT", [("shop.orders",)]),
        ("DROP TABLE orders, other.t, items", [("shop.orders", "shop.items")]),
        ("RENAME TABLE shop.a TO other.b", [("shop.a",)]),
        ("RENAME TABLE other.a TO shop.b", [("shop.b",)]),
        ("ALTER TABLE secret ADD x INT", []), ("ALTER TABLE other.t ADD x INT", []), ("CREATE TABLE t (id INT)", [("shop.t",)]),
        ("CREATE TABLE other.t LIKE t", []), ('DROP TABLE "orders"', [("shop.orders",)]),
        ("GRANT SELECT ON *.* TO u", []), ("DROP DATABASE shop", [()]), ("DROP DATABASE other", []),
        ("DROP SCHEMA IF EXISTS `shop`", [()]),
    ],
)  # fmt: skip
def test_only_captured_tables_make_a_barrier(text: str, expected: list[tuple[str, ...]]) -> None:
    assert tables(text) == expected


def test_the_default_database_decides_for_bare_names() -> None:
    assert tables("DROP TABLE orders", database="other") == []
    assert tables("DROP TABLE shop.orders", database="other") == [("shop.orders",)]
    assert tables("DROP TABLE orders", database="") == []


def test_what_cannot_be_read_is_a_barrier_for_every_table() -> None:
    assert tables("FROBNICATE THE 'SHOP") == [()]
    assert tables("FROBNICATE THE SHOP") == [()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO orders VALUES (1)", ("shop.orders",)),
        ("REPLACE INTO orders (id, x) VALUES (1, CONCAT('a', NOW()))", ("shop.orders",)),
        ("UPDATE shop.orders SET a = 1", ("shop.orders",)),
        ("UPDATE shop.orders, shop.items SET a = 1", ("shop.orders", "shop.items")),
        ("LOAD DATA INFILE 'x' INTO TABLE orders", ("shop.orders",)),
        ("CREATE TABLE shop.copy SELECT * FROM other.t", ("shop.copy",)),
        ("INSERT INTO orders SELECT * FROM items", ("shop.orders",)),
        ("DELETE shop.orders FROM shop.orders JOIN other.t USING (id)", ("shop.orders",)),
        ("CALL fill()", ()),
        ("DO fill()", ()),
        ("INSERT INTO (", ()),
    ],
)
def test_rows_changed_by_a_statement_stop_their_tables(text: str, expected: tuple[str, ...]) -> None:
    assert tables(text) == [expected]


HARMLESS = [
    "INSERT INTO other.t VALUES (1)",
    "UPDATE secret SET a = COALESCE(a, 1)",
    "DELETE FROM other.t",
    "REPLACE INTO percona.checksums (db, crc) SELECT 'shop', COUNT(*) FROM shop.orders WHERE (id >= 1)",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_rows_of_other_tables_are_passed_over_where_the_plan_says_that_nothing_hangs_on_them(text: str) -> None:
    assert tables(text) == []
    assert [one.tables for one in find_barriers([statement(text)], BLIND)] == [()]
    earlier = PLAN.model_copy(update={"side_effects_at": "binlog.000001:9000"})  # of several intervals planned at once
    assert [one.tables for one in find_barriers([statement(text)], earlier)] == [()]
    prepared_before = PLAN.model_copy(update={"start": "binlog.000001:1000"})
    assert [one.tables for one in find_barriers([statement(text)], prepared_before)] == [()]


@pytest.mark.parametrize("other", [
    "DROP TRIGGER other.x", "CREATE DEFINER=`root`@`%` FUNCTION f() RETURNS INT RETURN 1", "DROP TABLE other.t",
    "ALTER TABLE other.child DROP FOREIGN KEY k", "DROP VIEW other.w", "DROP DATABASE elsewhere", "FROBNICATE",
])  # fmt: skip
def test_a_plan_says_nothing_of_an_interval_that_drops_or_defines(other: str) -> None:
    for seqno in (1, 20):
        found = find_barriers([statement(HARMLESS[0]), statement(other, seqno)], PLAN)
        assert () in [one.tables for one in found if one.statement == HARMLESS[0]]
    for harmless in ("CREATE TEMPORARY TABLE other.x (id INT)", "GRANT SELECT ON *.* TO u", "SAVEPOINT a"):
        assert find_barriers([statement(HARMLESS[0]), statement(harmless, 20)], PLAN) == ()
    shadowed = statement("CREATE TEMPORARY TABLE shop.x (id INT)", 20)
    assert [one.tables for one in find_barriers([statement(HARMLESS[0]), shadowed], PLAN)] == [("shop.x",)]


def test_a_checksum_run_stops_no_table() -> None:
    """What pt-table-checksum logs: its database and table, if they are missing, and statements that write to it."""
    table = (
        "CREATE TABLE IF NOT EXISTS `percona`.`checksums` (\n  db CHAR(64) NOT NULL,\n  chunk_time FLOAT NULL,\n"
        "  lower_boundary TEXT NULL,\n  ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,\n"
        "  PRIMARY KEY (db, tbl, chunk),\n  INDEX ts_db_tbl (ts, db, tbl)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8"
    )
    texts = (
        "CREATE DATABASE IF NOT EXISTS `percona` /* pt-table-checksum */",
        table,
        "DELETE FROM `percona`.`checksums` WHERE db = 'shop' AND tbl = 'orders'",
        "REPLACE INTO `percona`.`checksums` (db, tbl, chunk, this_cnt, this_crc) SELECT 'shop', 'orders', '1', COUNT(*) AS"
        " cnt, COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, ISNULL(`n`))) AS UNSIGNED)), 10, 16)), 0) AS crc"
        " FROM `shop`.`orders` FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '1')) /*checksum chunk*/",
        "UPDATE `percona`.`checksums` SET chunk_time = '0.01', master_crc = 'x' WHERE db = 'shop' AND chunk = '1'",
    )
    assert find_barriers([statement(text, seqno) for seqno, text in enumerate(texts, 5)], PLAN) == ()


def test_who_only_reads_a_table_fires_none_of_its_triggers() -> None:
    read = "REPLACE INTO percona.checksums (db) SELECT 'shop' FROM shop.audited"
    assert tables(read) == []
    assert tables("INSERT INTO other.audited (id) SELECT 1") == tables("INSERT INTO other.t SELECT id FROM v") == [()]
    earlier = PLAN.model_copy(update={"side_effects": ("audited", "v"), "side_effects_of_writes": ()})
    assert [one.tables for one in find_barriers([statement(read)], earlier)] == [()]


def test_each_statement_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = list[str]()

    def counted(text: str, *more: Any, **options: Any) -> Effect:
        judged.append(text)
        return effect(text, *more, **options)

    monkeypatch.setattr(barriers, "effect", counted)
    texts = [f"INSERT INTO other.t VALUES ({number})" for number in range(5)]
    assert find_barriers([statement(text, seqno) for seqno, text in enumerate(texts)], PLAN) == ()
    assert judged == texts


@pytest.mark.parametrize("other", [
    "CREATE OR REPLACE TABLE other.t (id INT)", "CREATE TABLE other.t LIKE other.s", "CREATE OR REPLACE DATABASE other",
    "CREATE TABLE other.t (id INT, FOREIGN KEY (id) REFERENCES audited (id) ON DELETE CASCADE)",
    "CREATE TABLE other.t (id INT) ENGINE = FEDERATED CONNECTION = 'x'",
    "CREATE TABLE other.t (id INT) ENGINE = MERGE UNION = (shop.orders)",
])  # fmt: skip
def test_new_tables_that_reach_others_may_change_what_a_plan_says(other: str) -> None:
    found = find_barriers([statement(HARMLESS[0]), statement(other, 20)], PLAN)
    assert () in [one.tables for one in found if one.statement == HARMLESS[0]]


@pytest.mark.parametrize("text", [
    "INSERT INTO audited VALUES (1)", "INSERT INTO other.AUDITED (a) VALUES (1)", "INSERT INTO `v` VALUES (1)",
    "INSERT INTO other.t SELECT * FROM v", "UPDATE orders SET a = f(1)", "INSERT INTO other.t VALUES (shop.now(1))",
    "INSERT INTO t (a) VALUES (t(1))", "INSERT INTO other.t SELECT `now`()", "DELETE FROM mysql.t WHERE f(1)",
])  # fmt: skip
def test_triggers_views_and_functions_may_reach_every_captured_table(text: str) -> None:
    assert tables(text) == [()]


@pytest.mark.parametrize("text", [
    "INSERT INTO mysql.rds_heartbeat2(id, value) values (1,1583861586076) ON DUPLICATE KEY UPDATE value = 1583861586076",
    "DELETE FROM mysql.rds_sysinfo where name = 'innodb_txn_key'",
])  # fmt: skip
def test_tables_of_the_server_itself_have_no_triggers(text: str) -> None:
    assert find_barriers([statement(text)], BLIND) == ()


def test_a_marker_table_that_a_statement_changes_stops_the_interval() -> None:
    plan = PLAN.model_copy(update={"skip": Skip(marker_tables=("other.marker",))})
    with pytest.raises(DataError, match="the log holds a statement that changed rows") as caught:
        find_barriers([statement("INSERT INTO other.marker VALUES (1)")], plan)
    assert (caught.value.where["table"], caught.value.exit_code) == ("other.marker", 4)


def test_a_statement_as_long_as_a_log_file_is_kept_by_its_beginning() -> None:
    (barrier,) = find_barriers([statement("INSERT INTO orders VALUES ('" + "x" * 10**6 + "')")], PLAN)
    assert (len(barrier.statement), barrier.tables) == (1000, ("shop.orders",))
    assert writes_rows(barrier)


def test_rows_that_are_taken_back_stop_their_tables() -> None:
    undo = replace(statement("ROLLBACK TO `s`", rows=True), row_tables=("shop.items", "shop.orders"))
    assert [one.tables for one in find_barriers([undo], PLAN)] == [("shop.items", "shop.orders")]
    assert find_barriers([statement("ROLLBACK TO `s`")], PLAN) == ()


def test_barriers_come_in_the_order_of_their_transactions() -> None:
    given = [statement(f"DROP TABLE t{seqno}", seqno, f"binlog.000001:{seqno}") for seqno in (30, 9, 100, 2)]
    assert [barrier.seqno for barrier in find_barriers(given, PLAN)] == [2, 9, 30, 100]


def test_statements_of_one_transaction_keep_their_order_in_the_log() -> None:
    given = [statement(f"DROP TABLE t{at}", 5_000, f"binlog.000001:{at}") for at in (999, 1000, 10_000)]
    assert [barrier.position for barrier in find_barriers(reversed(given), PLAN)] == [one.position for one in given]


def test_a_statement_in_another_encoding_is_a_barrier_that_can_be_stored() -> None:
    log = LogBuilder(checksum=False)
    at = log.query(b"ALTER TABLE orders COMMENT 'caf\xe9'", "shop")
    query = read_query(2, bytes(log.data[at + 19 :]))
    (barrier,) = find_barriers([statement(query.text, database=query.database)], PLAN)
    assert barrier.tables == ("shop.orders",)
    assert Barrier.model_validate_json(barrier.model_dump_json()) == barrier
