"""Statements of the log: barriers, statements that stop the interval, statements that may be passed over."""

from __future__ import annotations

import pytest

from loader.binlog.statement import LogStatement, read_query
from loader.errors import DataError, LoaderError, UnsupportedError
from loader.extract.judge import judge
from loader.staging.documents import Barrier, Skip, TableFilter
from tests.unit.binlog.builder import LogBuilder

ANSI = 4
SHOP = TableFilter(include=("shop.*",), exclude=("shop.secret",))


def statement(
    text: str, seqno: int = 7, position: str = "binlog.000001:99", database: str = "shop", *, rows: bool = False
) -> LogStatement:
    return LogStatement(seqno, position, database, text, ANSI, False, rows)


def tables(text: str, database: str = "shop") -> list[tuple[str, ...]]:
    """The tables of each barrier that a statement makes."""
    return [barrier.tables for barrier in judge([statement(text, database=database)], SHOP, Skip())]


def test_a_barrier_carries_seqno_position_statement_and_tables() -> None:
    assert judge([statement("TRUNCATE orders")], SHOP, Skip()) == (
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
    "text",
    [
        "INSERT INTO orders VALUES (1)",
        "UPDATE shop.orders SET a = 1",
        "DELETE FROM orders",
        "REPLACE INTO orders VALUES (1)",
        "LOAD DATA INFILE 'x' INTO TABLE orders",
        "CALL fill()",
        "CREATE TABLE shop.copy SELECT * FROM other.t",
        "INSERT INTO orders SELECT * FROM other.t",
        "DELETE shop.orders FROM shop.orders JOIN other.t USING (id)",
    ],
)
def test_rows_changed_by_a_statement_stop_the_interval(text: str) -> None:
    with pytest.raises(DataError, match="rows were changed by a statement") as caught:
        judge([statement(text)], SHOP, Skip())
    assert caught.value.where["position"] == "binlog.000001:99"
    assert "binlog_format=ROW" in caught.value.hint


@pytest.mark.parametrize("text", ["INSERT INTO other.t VALUES (1)", "UPDATE secret SET a = 1", "DELETE FROM other.t"])
def test_rows_of_other_tables_changed_by_a_statement_are_passed_over(text: str) -> None:
    assert tables(text) == []


def test_rows_that_are_taken_back_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="takes back rows of captured tables") as caught:
        judge([statement("ROLLBACK TO `s`", rows=True)], SHOP, Skip())
    assert caught.value.where == {"position": "binlog.000001:99"}
    assert judge([statement("ROLLBACK TO `s`")], SHOP, Skip()) == ()


def test_barriers_come_in_the_order_of_their_transactions() -> None:
    given = [statement(f"DROP TABLE t{seqno}", seqno, f"binlog.000001:{seqno}") for seqno in (30, 9, 100, 2)]
    assert [barrier.seqno for barrier in judge(given, SHOP, Skip())] == [2, 9, 30, 100]


def test_statements_of_one_transaction_keep_their_order_in_the_log() -> None:
    given = [statement(f"DROP TABLE t{at}", 5_000, f"binlog.000001:{at}") for at in (999, 1000, 10_000)]
    assert [barrier.position for barrier in judge(reversed(given), SHOP, Skip())] == [one.position for one in given]


def test_a_statement_in_another_encoding_is_a_barrier_that_can_be_stored() -> None:
    log = LogBuilder(checksum=False)
    at = log.query(b"ALTER TABLE orders COMMENT 'caf\xe9'", "shop")
    query = read_query(2, bytes(log.data[at + 19 :]))
    (barrier,) = judge([statement(query.text, database=query.database)], SHOP, Skip())
    assert barrier.tables == ("shop.orders",)
    assert Barrier.model_validate_json(barrier.model_dump_json()) == barrier


def test_the_errors_of_a_statement_are_the_loader_s_and_need_a_look() -> None:
    for text in ("INSERT INTO orders VALUES (1)", "ROLLBACK TO SAVEPOINT s"):
        with pytest.raises(LoaderError) as caught:
            judge([statement(text, rows=True)], SHOP, Skip())
        assert caught.value.exit_code == 4
