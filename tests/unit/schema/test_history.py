"""The schemas of tables as statements make them, transaction by transaction."""

from __future__ import annotations

import pytest

from loader.errors import UnsupportedError
from loader.model.table import Column, TableName, TableSchema
from loader.schema.history import SchemaHistory
from loader.schema.reading import table_changes

T, U = TableName("db", "t"), TableName("db", "u")
ID, A = Column("id", "int"), Column("a", "varchar", charset="latin1")
X = Column("x", "bigint")
START = TableSchema(T, (ID, A), ("id",))


def history(*statements: str, primary: bool = True) -> SchemaHistory:
    """Statements of the transactions 10, 20, ... after the position 5."""
    made = SchemaHistory(5, [START], {T} if primary else set())
    for number, statement in enumerate(statements, 1):
        made.follow(10 * number, table_changes(statement, "db", 0, False))
    return made


def unknown(made: SchemaHistory, name: TableName, seqno: int) -> str:
    with pytest.raises(UnsupportedError, match="columns of a table are not known") as caught:
        made.at(name, seqno)
    assert caught.value.where == {"table": str(name), "seqno": str(seqno)}
    return caught.value.why


def test_a_schema_is_that_after_the_last_statement_before_the_rows() -> None:
    made = history("ALTER TABLE t ADD x BIGINT FIRST", "TRUNCATE t", "ALTER TABLE t DROP a, MODIFY x BIGINT AFTER id")
    assert [made.at(T, seqno).columns for seqno in (5, 9, 10, 29, 30, 99)] == [
        (ID, A), (ID, A), (X, ID, A), (X, ID, A), (ID, X), (ID, X),
    ]  # fmt: skip
    assert unknown(made, T, 4) == unknown(made, U, 99) == "no statement made it"


def test_rows_of_the_transaction_that_makes_a_table_have_its_schema() -> None:
    made = history("CREATE TABLE u (id INT, x BIGINT, PRIMARY KEY (X, id)) START TRANSACTION")
    assert made.at(U, 10) == TableSchema(U, (ID, X), ("x", "id"))


def test_tables_take_names_and_definitions_of_others() -> None:
    made = history("CREATE TABLE u LIKE t", "RENAME TABLE t TO w, u TO t", "ALTER TABLE t DROP a", "DROP TABLE w")
    assert made.at(U, 10) == TableSchema(U, (ID, A), ("id",))
    assert (made.at(T, 20).columns, made.at(T, 30).columns) == ((ID, A), (ID,))
    assert made.at(TableName("db", "w"), 39) == TableSchema(TableName("db", "w"), (ID, A), ("id",))
    assert unknown(made, TableName("db", "w"), 40) == unknown(made, U, 20) == "no statement made it"


def test_a_table_that_is_made_again_has_nothing_of_the_old_one() -> None:
    made = history(
        "CREATE TABLE IF NOT EXISTS t (x BIGINT)", "DROP DATABASE db", "CREATE TABLE IF NOT EXISTS t (x BIGINT)"
    )
    assert [made.at(T, seqno).columns for seqno in (10, 30)] == [(ID, A), (X,)]
    unknown(made, T, 20)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE t ADD x FOO", "type FOO is not known"), ("FROBNICATE", "a statement cannot be read"),
        ("ALTER TABLE t DROP x", "no column x"), ("ALTER TABLE t DROP PRIMARY KEY", "a unique key may be its key now"),
    ],
)  # fmt: skip
def test_what_a_statement_leaves_open_is_not_guessed(statement: str, why: str) -> None:
    made = history(statement, "CREATE TABLE IF NOT EXISTS t (x BIGINT)")
    assert made.at(T, 9) == START
    assert why in unknown(made, T, 10)
    assert why in unknown(made, T, 20)


def test_only_a_primary_key_stays_the_key_whatever_happens_to_unique_ones() -> None:
    for statement in (
        "ALTER TABLE t ADD UNIQUE (a)",
        "DROP INDEX i ON t",
        "ALTER TABLE t MODIFY a VARCHAR(9) NOT NULL",
    ):
        assert history(statement).at(T, 10).key == ("id",)
        assert unknown(history(statement, primary=False), T, 10) == "a unique key may be its key now"
    assert unknown(history("CREATE TABLE u (x BIGINT NOT NULL UNIQUE)"), U, 10) == "a unique key may be its key now"
