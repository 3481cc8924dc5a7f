"""The catalog and the log describe a table alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loader.errors import UnsupportedError, UsageError
from loader.model.table import TableName, TableSchema
from loader.schema.history import SchemaHistory
from loader.schema.statement_reader import table_changes
from loader.source.bulk_schemas import read_tables
from loader.source.schemas import find_tables, labels_of, read_key, read_schemas
from tests.conftest import StartServer
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.values import more_values

pytestmark = pytest.mark.integration

EVERY_TYPE = (Path(__file__).parents[1] / "initial_load" / "values" / "every_type.sql").read_text()

KEYS = {
    "(a INT, b INT, c INT, PRIMARY KEY (c, a))": ("c", "a"),
    "(a INT NOT NULL, b INT NOT NULL, UNIQUE KEY z (b), UNIQUE KEY y (a))": ("b",),
    "(a INT, b INT NOT NULL, c VARCHAR(20) NOT NULL, UNIQUE KEY x (a), UNIQUE KEY w (c(5)), UNIQUE KEY v (b, c))": (
        "b",
        "c",
    ),
    "(a INT NOT NULL, b INT NOT NULL, UNIQUE KEY q (b DESC, a))": ("b", "a"),
    "(a TEXT NOT NULL, b INT NOT NULL, UNIQUE KEY q (a(10)))": (),
    "(a TEXT NOT NULL, b INT NOT NULL, PRIMARY KEY (a(10), b))": ("a", "b"),
    "(a INT, b INT, UNIQUE KEY q (a))": (),
    "(a INT, b INT)": (),
    "(a INT, b INT, PRIMARY KEY (a DESC, b))": ("a", "b"),
    "(a INT PRIMARY KEY, b INT, UNIQUE KEY u (b)) ENGINE=MyISAM": ("a",),
    "(a INT PRIMARY KEY, b INT NOT NULL, UNIQUE KEY u (b)) ENGINE=MEMORY": ("a",),
}


@pytest.fixture(params=["mysql", "mariadb"])
def source(request: pytest.FixtureRequest) -> Iterator[SourceServer]:
    made = SourceServer(request.getfixturevalue(f"{request.param}_server"))
    yield made
    made.drop()


def both(source: SourceServer, table: str, *statements: str) -> tuple[TableSchema, TableSchema]:
    """The schema from the catalog and the one from the log, of a table that the statements make and write."""
    start, name = source.log_end(), source.name(table)
    source.run(*statements)
    with source.connected() as connection:
        found = read_schemas(connection, [name])[0]
        every = read_tables(connection, name.__eq__)
    assert {one: told.schema for one, told in every.tables.items()} == {name: found}
    assert every.charsets[name.schema] == "utf8mb4"
    check_statement(source, found, statements[0])
    return found, source.logged_schemas(start, source.log_end())[name]


def check_statement(source: SourceServer, found: TableSchema, statement: str) -> None:
    """CREATE TABLE tells the same schema, or that a unique key may be the key."""
    history = SchemaHistory({source.schema: "utf8mb4"})
    mariadb = source.kind == "mariadb"
    history.apply(1, "log.000001:1", table_changes(statement, source.schema, 0, mariadb), statement)
    told = history.latest(found.name)
    assert told.schema is not None, told.why
    assert told.schema.columns == found.columns
    assert told.schema.key == found.key or "UNIQUE" in told.unreadable_why


def test_every_type(source: SourceServer) -> None:
    found, logged = both(source, "every_type", EVERY_TYPE, "INSERT INTO every_type (k1, k2) VALUES ('a', 1)")
    for column, other in zip(found.columns, logged.columns, strict=True):
        assert column == other
    assert found == logged
    assert found.schema_id == logged.schema_id
    assert found.key == ("k2", "k1")


@pytest.mark.parametrize(("definition", "key"), KEYS.items(), ids=range(len(KEYS)))
def test_the_key_is_the_one_that_the_server_logs(source: SourceServer, definition: str, key: tuple[str, ...]) -> None:
    found, logged = both(source, "t", f"CREATE TABLE t {definition}", "INSERT INTO t (a, b) VALUES (1, 1)")
    assert found.key == key
    assert found.schema_id == logged.schema_id


def test_the_types_that_few_tables_have(source: SourceServer) -> None:
    insert = "INSERT INTO more_types (k1, k2) VALUES ('a', 1)"
    found, logged = both(source, "more_types", more_values.table(source.kind), insert)
    for column, other in zip(found.columns, logged.columns, strict=True):
        assert column == other
    assert found.schema_id == logged.schema_id


GEOMETRIES = ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION")


def test_geometries_between_texts(source: SourceServer) -> None:
    columns = ", ".join(
        f"g{n} {kind}, c{n} VARCHAR(9) CHARACTER SET latin{(1, 2, 5, 7)[n % 4]}" for n, kind in enumerate(GEOMETRIES)
    )
    create = f"CREATE TABLE t (id INT PRIMARY KEY, {columns}, v VARBINARY(9), w VARCHAR(9) CHARACTER SET gbk)"
    found, logged = both(source, "t", create, "INSERT INTO t (id) VALUES (1)")
    assert found == logged


@pytest.mark.parametrize(
    "charset", ["latin1", "ascii", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32", "cp1250", "gbk"]
)
def test_every_collation_of_a_covered_character_set(source: SourceServer, charset: str) -> None:
    collations = [
        str(name)
        for (name,) in source.run(
            "SELECT COLLATION_NAME FROM information_schema.COLLATIONS"
            f" WHERE CHARACTER_SET_NAME = '{charset}' AND IS_COMPILED = 'Yes' ORDER BY ID"
        )
    ]
    columns = ", ".join(f"c{n} VARCHAR(9) COLLATE {name}" for n, name in enumerate(collations))
    found, logged = both(
        source, "t", f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", "INSERT INTO t (id) VALUES (1)"
    )
    assert collations
    assert found == logged


def test_a_generated_key_that_the_server_would_hide(fresh_server: StartServer) -> None:
    source = SourceServer(fresh_server("mysql"))
    start = source.log_end()
    source.run("SET sql_generate_invisible_primary_key = ON", "CREATE TABLE t (a INT)", "INSERT INTO t (a) VALUES (1)")
    source.run("SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF")
    with source.connected() as connection:
        found = read_schemas(connection, [source.name("t")])[0]
        told = read_tables(connection, source.name("t").__eq__).tables[source.name("t")]
    assert found.key == ("my_row_id",)
    assert (told.schema, told.primary, told.others) == (found, True, False)
    assert found == source.logged_schemas(start, source.log_end())[source.name("t")]


def test_a_functional_index_adds_no_column(source: SourceServer) -> None:
    if source.kind != "mysql":
        pytest.skip("MySQL only")
    found, logged = both(
        source,
        "t",
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9), UNIQUE KEY f ((LOWER(b))))",
        "INSERT INTO t VALUES (1, 'x')",
    )
    assert found == logged


REFUSED = {
    "mysql": {},
    "mariadb": {"g YEAR(2)": "year(2)"},
}


def test_types_that_are_not_covered_are_named(source: SourceServer) -> None:
    for number, (definition, word) in enumerate(REFUSED[source.kind].items()):
        source.run(
            f"CREATE TABLE t{number} (id INT PRIMARY KEY, {definition})", "CREATE TABLE IF NOT EXISTS fine (a INT)"
        )
        with source.connected() as connection:
            assert read_schemas(connection, [source.name("fine")])
            with pytest.raises(UnsupportedError) as caught:
                read_schemas(connection, [source.name("fine"), source.name(f"t{number}")])
        assert word in str(caught.value).lower()
        assert caught.value.where["table"] == f"{source.schema}.t{number}"
        assert caught.value.where.get("column", "g") == "g"


def test_tables_with_hidden_columns_are_refused(mariadb_server: object) -> None:
    source = SourceServer(mariadb_server)  # type: ignore[arg-type]
    source.run(
        "CREATE TABLE versioned (a INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE TABLE hashed (a INT PRIMARY KEY, b TEXT, UNIQUE KEY (b))",
    )
    with source.connected() as connection:
        for table in ("versioned", "hashed"):
            with pytest.raises(UnsupportedError):
                read_schemas(connection, [source.name(table)])
    source.drop()


def test_tables_are_found_and_views_are_not(source: SourceServer) -> None:
    source.run("CREATE TABLE b (a INT)", "CREATE TABLE `A.a` (a INT)", "CREATE VIEW v AS SELECT * FROM b")
    with source.connected() as connection:
        found = find_tables(connection, lambda name: name.schema == source.schema)
        assert found == [source.name("A.a"), source.name("b")]
        assert not find_tables(connection, lambda name: name.schema == "mysql")
        with pytest.raises(UsageError):
            read_schemas(connection, [source.name("v")])
        with pytest.raises(UsageError):
            read_schemas(connection, [source.name("B")])
        with pytest.raises(UsageError):
            read_schemas(connection, [TableName("no such schema", "t")])


def test_columns_that_the_user_may_not_see_are_missed(source: SourceServer) -> None:
    name = f"u{source.schema[-8:]}"
    user = f"{name}@'127.0.0.1'"
    source.run("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT)", f"CREATE USER {user}")
    source.run(f"GRANT SELECT (a, c) ON t TO {user}")
    limited = source.address.model_copy(update={"user": name})
    source.address, address = limited, source.address
    try:
        with source.connected() as connection, pytest.raises(UsageError):
            read_schemas(connection, [source.name("t")])
    finally:
        source.address = address
        source.run(f"DROP USER {user}")


def test_the_index_of_the_key(source: SourceServer) -> None:
    source.run(
        "CREATE TABLE t (a INT, b VARCHAR(30), c INT NOT NULL, PRIMARY KEY (b(4) DESC, a))",
        "CREATE TABLE u (a INT, b INT, c INT NOT NULL, UNIQUE KEY `in``dex` (c))",
    )
    with source.connected() as connection:
        key = read_key(connection, source.name("t"))
        other = read_key(connection, source.name("u"))
    assert key is not None
    assert other is not None
    assert (key.index, key.names) == ("PRIMARY", ("b", "a"))
    assert [part.prefix for part in key.parts] == [True, False]
    assert [part.descending for part in key.parts] == [source.kind == "mysql", False] or source.kind == "mariadb"
    assert (other.index, other.names) == ("in`dex", ("c",))


def test_labels() -> None:
    assert labels_of(r"enum('a','it''s','b,c','back\\slash','\n\r\0','')") == (
        "a", "it's", "b,c", "back\\slash", "\n\r\0", "",
    )  # fmt: skip
    assert labels_of("set('''','\"')") == ("'", '"')


def test_a_schema_is_read_without_the_other_tables(source: SourceServer) -> None:
    source.run("CREATE TABLE t (a INT PRIMARY KEY)")
    alone = sent_bytes(source)
    source.run(*(f"CREATE TABLE other{number} (a INT PRIMARY KEY)" for number in range(100)))
    assert abs(sent_bytes(source) - alone) < 50  # digits of numbers in the answers


def sent_bytes(source: SourceServer) -> int:
    """The bytes that the server sends for the schema of the table `t`."""
    with source.connected() as connection, connection.cursor() as cursor:
        read_schemas(connection, [source.name("t")])
        cursor.execute("SHOW SESSION STATUS LIKE 'Bytes_sent'")
        ((_, sent),) = cursor.fetchall()
    return int(sent)
