"""The schema of each table in each transaction, as DDL statements change it."""

from __future__ import annotations

import pytest

from loader.model.table import Column, SchemaVersion, TableName, TableSchema
from loader.schema.history import KnownTable, SchemaHistory
from loader.schema.statement_reader import table_changes

T, U = TableName("db", "t"), TableName("db", "u")
ID, A = Column("id", "int"), Column("a", "varchar", charset="latin1")
X = Column("x", "bigint")
START = TableSchema(T, (ID, A), ("id",))


def history(*statements: str, primary: bool = True, mariadb: bool = False, **of: object) -> SchemaHistory:
    """Statements of the transactions 10, 20, ... after the position 5."""
    made = SchemaHistory(**of)  # type: ignore[arg-type]
    made.set_table(5, "log.1:5", T, KnownTable.of(START, primary=primary, charset="latin1"))
    for number, statement in enumerate(statements, 1):
        made.apply(10 * number, f"log.1:{10 * number}", table_changes(statement, "db", 0, mariadb), statement, "greek")
    return made


def version(made: SchemaHistory, name: TableName, seqno: int) -> SchemaVersion | None:
    known = [one for one in made.versions(name) if one.since <= seqno]
    return known[-1] if known else None


def schema(made: SchemaHistory, name: TableName, seqno: int) -> TableSchema:
    found = version(made, name, seqno)
    assert found is not None and found.schema is not None, found
    return found.schema


def unknown(made: SchemaHistory, name: TableName, seqno: int) -> str:
    found = version(made, name, seqno)
    assert found is None or found.schema is None
    return found.why if found else "no statement made it"


def test_a_schema_is_that_after_the_last_statement_before_the_rows() -> None:
    made = history("ALTER TABLE t ADD x BIGINT FIRST", "TRUNCATE t", "ALTER TABLE t DROP a, MODIFY x BIGINT AFTER id")
    assert [schema(made, T, seqno).columns for seqno in (5, 9, 10, 29, 30, 99)] == [
        (ID, A), (ID, A), (X, ID, A), (X, ID, A), (ID, X), (ID, X),
    ]  # fmt: skip
    assert unknown(made, T, 4) == unknown(made, U, 99) == "no statement made it"


def test_a_column_before_a_key_that_may_be_generated_has_an_unknown_place() -> None:
    key = "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */"
    made = history(
        f"CREATE TABLE u ({key}, id INT, PRIMARY KEY (my_row_id))", "ALTER TABLE u ADD x BIGINT UNSIGNED FIRST"
    )
    assert [column.name for column in schema(made, U, 10).columns] == ["my_row_id", "id"]
    assert unknown(made, U, 20).startswith("the statement does not tell whether MySQL generated my_row_id")


def test_rows_of_the_transaction_that_makes_a_table_have_its_schema() -> None:
    made = history("CREATE TABLE u (id INT, x BIGINT, PRIMARY KEY (X, id)) START TRANSACTION")
    assert schema(made, U, 10) == TableSchema(U, (ID, X), ("x", "id"))


def test_tables_take_names_and_definitions_of_others() -> None:
    made = history("CREATE TABLE u LIKE t", "RENAME TABLE t TO w, u TO t", "ALTER TABLE t DROP a", "DROP TABLE w")
    assert schema(made, U, 10) == TableSchema(U, (ID, A), ("id",))
    assert (schema(made, T, 20).columns, schema(made, T, 30).columns) == ((ID, A), (ID,))
    assert schema(made, TableName("db", "w"), 39) == TableSchema(TableName("db", "w"), (ID, A), ("id",))
    assert unknown(made, TableName("db", "w"), 40) == unknown(made, U, 20) == "no statement made it"


def test_a_table_that_is_made_again_has_nothing_of_the_old_one() -> None:
    made = history(
        "CREATE TABLE IF NOT EXISTS t (x BIGINT)", "DROP DATABASE db", "CREATE TABLE IF NOT EXISTS t (x BIGINT)"
    )
    assert [schema(made, T, seqno).columns for seqno in (10, 30)] == [(ID, A), (X,)]
    unknown(made, T, 20)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("ALTER TABLE t ADD x FOO", "type FOO is not known"), ("FROBNICATE", "a statement cannot be parsed"),
        ("ALTER TABLE t DROP x", "no column x"), ("ALTER TABLE t DROP PRIMARY KEY", "a unique key may be its key now"),
    ],
)  # fmt: skip
def test_what_a_statement_leaves_open_is_not_guessed(statement: str, why: str) -> None:
    made = history(statement, "CREATE TABLE IF NOT EXISTS t (x BIGINT)")
    assert schema(made, T, 9) == START
    assert why in unknown(made, T, 10)
    assert why in unknown(made, T, 20)


def test_only_a_primary_key_stays_the_key_whatever_happens_to_unique_ones() -> None:
    for statement in (
        "ALTER TABLE t ADD UNIQUE (a)",
        "DROP INDEX i ON t",
        "ALTER TABLE t MODIFY a VARCHAR(9) NOT NULL",
    ):
        assert schema(history(statement), T, 10).key == ("id",)
        assert unknown(history(statement, primary=False), T, 10) == f"a unique key may be its key now: {statement}"
    made = "CREATE TABLE u (x BIGINT NOT NULL UNIQUE)"
    assert unknown(history(made), U, 10) == f"a unique key may be its key now: {made}"


def test_a_table_without_unique_keys_keeps_none() -> None:
    made = history(
        "CREATE TABLE u (id INT, x INT, y INT)", "ALTER TABLE u MODIFY x BIGINT NOT NULL, DROP y",
        "ALTER TABLE u ADD PRIMARY KEY (id)", "ALTER TABLE u DROP PRIMARY KEY", "ALTER TABLE u ADD UNIQUE (x)",
    )  # fmt: skip
    assert [schema(made, U, seqno).key for seqno in (10, 20, 30, 40)] == [(), (), ("id",), ()]
    assert "a unique key may be its key now" in unknown(made, U, 50)


TEXTS = "CREATE TABLE u (id INT PRIMARY KEY, a TEXT, e ENUM('x'), b CHAR(3) CHARACTER SET ascii, j BLOB)"


def charsets(made: SchemaHistory, seqno: int, name: TableName = U) -> list[str]:
    return [column.charset for column in schema(made, name, seqno).columns]


def test_texts_have_the_character_set_of_their_table_or_its_database() -> None:
    made = history(
        TEXTS,
        "ALTER TABLE u ADD c VARCHAR(9), DEFAULT CHARSET = koi8r, MODIFY a TEXT",
        "ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4, ADD d CHAR(2)",
        "ALTER DATABASE CHARACTER SET = cp1251",
        f"{TEXTS.replace('TABLE u', 'OR REPLACE TABLE u')} COMMENT='CHARSET=x' DEFAULT CHARSET=utf8 COLLATE utf8_bin",
        TEXTS.replace("TABLE u", "OR REPLACE TABLE u"),
        "CREATE DATABASE new",
        TEXTS.replace("TABLE u", "TABLE new.u"),
        charsets={"db": "hebrew"},
    )
    assert charsets(made, 10) == ["", "hebrew", "hebrew", "ascii", ""]
    assert charsets(made, 20) == ["", "koi8r", "hebrew", "ascii", "", "koi8r"]
    assert charsets(made, 30) == ["", "utf8mb4", "utf8mb4", "utf8mb4", "", "utf8mb4", "utf8mb4"]
    assert charsets(made, 50) == ["", "utf8mb3", "utf8mb3", "ascii", ""]
    assert charsets(made, 60) == ["", "cp1251", "cp1251", "ascii", ""]
    assert charsets(made, 80, TableName("new", "u")) == ["", "greek", "greek", "ascii", ""]


def test_a_character_set_that_nothing_tells_stays_open() -> None:
    assert charsets(history(TEXTS), 10) == ["", "", "", "ascii", ""]
    both = "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, MODIFY a CHAR(3) CHARACTER SET ascii"
    assert charsets(history(both), 10, T) == ["", ""]


def test_labels_whose_bytes_are_kept_become_other_texts() -> None:
    made = history(
        "CREATE TABLE u (e ENUM('x', 'é'), f SET('y')) CHARSET latin1", "ALTER TABLE u CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4", "ALTER TABLE u ADD COLUMN g INT, RENAME COLUMN e TO h",
        "ALTER TABLE u MODIFY h ENUM('x', 'é')",
    )  # fmt: skip
    assert schema(made, U, 20) == schema(made, U, 10)
    assert "changes the labels of column e" in unknown(made, U, 30)
    assert "changes the labels of column e" in unknown(made, U, 40)
    assert [column.labels for column in schema(made, U, 50).columns] == [("x", "é"), ("y",), ()]


def test_other_columns_stay_known_if_labels_become_other_texts() -> None:
    """The log of a table with column names says the labels."""
    made = history(
        "CREATE TABLE u (e ENUM('é'), a INET4) CHARSET latin1", "ALTER TABLE u CONVERT TO CHARACTER SET utf8mb4"
    )
    last = made.named_versions(U)[-1].schema
    assert last and [(column.name, column.type, column.labels) for column in last.columns] == [
        ("e", "enum", ()), ("a", "inet4", ()),
    ]  # fmt: skip


def test_a_table_with_generated_columns_is_known_from_its_statement() -> None:
    made = history(
        "CREATE TABLE u (id INT PRIMARY KEY, x BIGINT GENERATED ALWAYS AS (id * 2) STORED)",
        "CREATE TABLE w (id INT) AS SELECT 1",
    )
    assert schema(made, U, 10) == TableSchema(U, (ID, X), ("id",))
    assert "does not list its columns" in unknown(made, TableName("db", "w"), 20)


def test_names_are_compared_as_the_server_does() -> None:
    statements = ("ALTER TABLE DB.T ADD x BIGINT", "RENAME TABLE T TO U")
    assert schema(history(*statements), T, 99) == START
    made = history(*statements, folds=True)
    assert schema(made, T, 10).columns == (ID, A, X)
    assert schema(made, U, 20) == TableSchema(U, (ID, A, X), ("id",))
    assert unknown(made, T, 20) == "no statement made it"


def test_what_is_given_counts_from_its_place_on() -> None:
    made = history("ALTER TABLE t ADD x FOO")
    made.set_table(10, "log.1:10", T, KnownTable.of(TableSchema(T, (ID, X), ()), primary=False))
    assert schema(made, T, 9) == START
    assert schema(made, T, 10).columns == (ID, X)
    assert made.latest_seqno(T) == 10
    assert list(made.tables()) == [T]


def test_a_rename_to_the_same_name_changes_nothing() -> None:
    made = history("ALTER TABLE t RENAME TO t", "ALTER TABLE t RENAME t, ADD x BIGINT")
    assert [schema(made, T, seqno).columns for seqno in (10, 20)] == [(ID, A), (ID, A, X)]
    folded = history("ALTER TABLE t RENAME TO T", folds=True)
    assert schema(folded, T, 10).columns == (ID, A)


def test_a_database_that_is_replaced_has_no_tables() -> None:
    made = history("CREATE OR REPLACE DATABASE db", "CREATE TABLE IF NOT EXISTS t (x BIGINT)", mariadb=True)
    unknown(made, T, 10)
    assert schema(made, T, 20).columns == (X,)


def test_a_database_that_is_made_again_has_its_own_character_set() -> None:
    again = "CREATE DATABASE IF NOT EXISTS db CHARACTER SET utf8mb4"
    made = history("DROP DATABASE db", again, "CREATE TABLE u (a TEXT)", charsets={"db": "hebrew"})
    assert charsets(made, 30) == ["utf8mb4"]


def test_a_primary_key_that_is_added_if_there_is_none() -> None:
    for text in (
        "ADD PRIMARY KEY IF NOT EXISTS (a)",
        "ADD CONSTRAINT IF NOT EXISTS c PRIMARY KEY (a)",
        "ADD COLUMN IF NOT EXISTS a INT PRIMARY KEY",
    ):
        assert schema(history(f"ALTER TABLE t {text}", mariadb=True), T, 10).key == ("id",)
    made = history("ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t ADD PRIMARY KEY IF NOT EXISTS (a)", mariadb=True)
    assert schema(made, T, 20).key == ("a",)


KEYS = {
    "DROP a, ADD A INT NOT NULL": ("A", "b"),
    "ADD a INT NOT NULL FIRST, CHANGE a x INT NOT NULL": ("a", "b"),
    "CHANGE a x INT NOT NULL, ADD a INT NOT NULL": ("x", "b"),
    "DROP a, CHANGE v a INT NOT NULL": ("b",),
}


@pytest.mark.parametrize("text", KEYS)
def test_a_key_follows_the_names_of_its_columns_as_on_the_server(text: str) -> None:
    made = history("CREATE TABLE k (a INT, b INT, v INT, PRIMARY KEY (a, b))", f"ALTER TABLE k {text}")
    assert schema(made, TableName("db", "k"), 20).key == KEYS[text]


def test_a_column_can_be_called_period() -> None:
    made = history("CREATE TABLE k (period INT PRIMARY KEY)")
    assert schema(made, TableName("db", "k"), 10).key == ("period",)
