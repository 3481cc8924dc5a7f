"""What a chunk stages is, byte for byte, what the log's kernel stages for the same rows."""

from __future__ import annotations

import threading

import pytest
from pymysql.err import MySQLError

from loader.errors import DataError
from loader.initial_load.chunks import select_expression
from loader.initial_load.result_set.reader import ResultReader, line_head, prepare_session
from loader.model.table import TableSchema
from loader.source.schemas import read_schemas
from tests.integration.initial_load.source_server import SourceServer
from tests.integration.initial_load.values import every_value, more_values

pytestmark = pytest.mark.integration

COMMITTED = "2026-11-21 09:30:00.123456"


def read(
    source: SourceServer, table: str, where: str = "TRUE", *, hex_fallback: bool = False
) -> tuple[TableSchema, list[bytes]]:
    """A table's schema and its rows as the reader stages them."""
    with source.connected() as connection:
        schema = read_schemas(connection, [source.name(table)])[0]
        prepare_session(connection)
        columns = ", ".join(select_expression(column) for column in schema.columns)
        lines: list[bytes] = []
        reader = ResultReader(connection, schema, line_head(54_000_000_000_123, COMMITTED), hex_fallback=hex_fallback)
        statement = f"SELECT {columns} FROM {source.schema}.{table} WHERE {where}"
        rows = reader.read(statement, lambda block: lines.extend(bytes(block).splitlines(keepends=True)))
    assert rows == len(lines)
    return schema, lines


def fields(line: bytes) -> list[str]:
    """The fields of a staged line, as they stand."""
    text, found, at = line.decode(), [], 0
    while at < len(text):
        end = at + 1
        if text[at] == '"':
            while text[end] != '"' or text[end + 1] == '"':
                end += 2 if text[end] == '"' else 1
            end += 1
        else:
            end = next(i for i in range(at, len(text)) if text[i] in ",\n")
        found.append(text[at:end])
        at = end + 1
    return found


def check_alike(schema: TableSchema, logged: list[bytes], loaded: list[bytes]) -> None:
    """Field by field; of the five before the columns, those that a load has of its own."""
    assert len(logged) == len(loaded)
    for mine in loaded:
        assert fields(mine)[:5] == ["I", "54000000000123", "0", COMMITTED, ""]
    by_key = {tuple(fields(line)[5:7]): fields(line) for line in loaded}
    for line in logged:
        expected = fields(line)
        assert expected[0] == "I"
        got = by_key[tuple(expected[5:7])]
        for column, value, other in zip(schema.columns, expected[5:], got[5:], strict=True):
            assert other == value, f"{column.name} {column} of {expected[5]}"


def test_every_value_of_every_type(source: SourceServer) -> None:
    source.run(every_value.TABLE)
    start = source.log_end()
    source.run(*every_value.statements(source.kind))
    logged = source.logged_lines(start, source.log_end())[source.name("every_type")].splitlines(keepends=True)
    schema, loaded = read(source, "every_type")
    assert len(loaded) == len(every_value.statements(source.kind))
    check_alike(schema, logged, loaded)


def test_the_types_that_few_tables_have(source: SourceServer) -> None:
    source.run(more_values.table(source.kind))
    start = source.log_end()
    source.run(*more_values.statements(source.kind))
    logged = source.logged_lines(start, source.log_end())[source.name("more_types")].splitlines(keepends=True)
    schema, loaded = read(source, "more_types")
    assert len(loaded) == len(more_values.ROWS)
    check_alike(schema, logged, loaded)


def test_a_set_with_an_empty_label_is_as_the_server_shows_it(source: SourceServer) -> None:
    labels = [("", "a b", "c"), ("a b", "", "c"), ("a b", "c", "")]
    columns = ", ".join(f"s{n} SET({','.join(map(repr, some))})" for n, some in enumerate(labels))
    source.run(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
    start = source.log_end()
    source.run("SET sql_mode = ''", *(f"INSERT INTO t VALUES ({n}, {n}, {n}, {n})" for n in range(8)))
    logged = source.logged_lines(start, source.log_end())[source.name("t")].splitlines()
    shown = source.run("SELECT id, s0, s1, s2 FROM t ORDER BY id")
    expected = ["{},{}".format(key, ",".join(f'"{value}"' for value in values)) for key, *values in shown]
    assert [line.split(b",", 5)[5].decode() for line in logged] == expected
    _, loaded = read(source, "t")
    assert [line.rstrip().split(b",", 5)[5].decode() for line in loaded] == expected


BAD = {
    "hebrew": "X'61A1'", "ucs2": "X'D800'", "gbk": "X'FEFE'", "geostd8": "X'FF'", "greek": "X'AE'", "cp932": "X'FA'"
}  # fmt: skip


@pytest.mark.parametrize("charset", BAD)
def test_bytes_that_the_character_set_does_not_have_are_named(source: SourceServer, charset: str) -> None:
    source.run(f"CREATE TABLE t (id INT PRIMARY KEY, b VARBINARY(9), v VARCHAR(9) CHARACTER SET {charset})")
    start = source.log_end()
    source.run(f"INSERT INTO t (id, v) VALUES (1, 'x'), (2, CONVERT({BAD[charset]} USING {charset}))")
    if source.run("SELECT HEX(v) FROM t WHERE id = 2") != [(BAD[charset][2:-1],)]:
        pytest.skip("the server refuses to store it")
    with pytest.raises(DataError, match=f"a value is not a varchar in {charset}") as caught:
        source.logged_lines(start, source.log_end())
    assert caught.value.where["column"] == "v"
    assert int(caught.value.where["position"]) > start.logpos
    with pytest.raises(DataError, match=f"a value is not a varchar in {charset}") as caught:
        read(source, "t")
    assert caught.value.where["column"] == "v"
    assert 'undecodable = "hex"' in caught.value.hint
    logged = source.logged_lines(start, source.log_end(), hex_fallback=True)[source.name("t")].splitlines()
    _, loaded = read(source, "t", hex_fallback=True)
    expected = [b'1,\\N,"x"', b'2,\\N,"\\x' + BAD[charset][2:-1].lower().encode() + b'"']
    assert [line.split(b",", 5)[5] for line in logged] == expected
    assert [line.rstrip().split(b",", 5)[5] for line in loaded] == expected


def test_many_rows_over_many_blocks(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000), n BIGINT, b VARBINARY(2000))")
    start = source.log_end()
    series = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
    source.run(
        source.deep_recursion,
        f"INSERT INTO t {series} SELECT i, REPEAT('ä\"', i % 700), -i, REPEAT(X'0AFF', i % 900) FROM n",
    )
    logged = source.logged_lines(start, source.log_end())[source.name("t")].splitlines()
    _, loaded = read(source, "t")
    assert len(loaded) == 20000
    assert {line.split(b",", 5)[5] for line in logged} == {line.rstrip().split(b",", 5)[5] for line in loaded}


# Around the longest packet of 2^24 - 1 bytes: the row has 15 bytes besides the value.
@pytest.mark.parametrize("size", [*range(16777198, 16777203), 2 * 16777215 - 15, 34_000_000])
def test_rows_larger_than_a_packet(mysql: SourceServer, size: int) -> None:
    mysql.run(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, v LONGTEXT)",
        f"INSERT INTO t VALUES (1, 'x', NULL), (2, REPEAT('x', {size}), 'end'), (3, NULL, REPEAT('\"', 9999))",
    )
    _, loaded = read(mysql, "t")
    assert [line.split(b",", 5)[5] for line in loaded] == [
        b'1,"78",\\N\n',
        b'2,"' + b"78" * size + b'","end"\n',
        b'3,\\N,"' + b'""' * 9999 + b'"\n',
    ]


def test_an_empty_table(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    assert read(source, "t")[1] == []


def test_one_connection_reads_again_and_again(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    with source.connected() as connection:
        schema = read_schemas(connection, [source.name("t")])[0]
        reader = ResultReader(connection, schema, b"")
        lines: list[bytes] = []
        for key in (1, 2, 3):
            statement = f"SELECT id FROM {source.schema}.t WHERE id = {key}"
            assert reader.read(statement, lambda block: lines.append(bytes(block))) == 1
    assert lines == [b"1\n", b"2\n", b"3\n"]


def test_an_error_in_the_middle_of_the_rows(source: SourceServer) -> None:
    source.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v CHAR(200))",
        "INSERT INTO t VALUES (1, ''), (2, ''), (3, ''), (4, '')",
        *["INSERT INTO t SELECT id + (SELECT MAX(id) FROM t), '' FROM t" for _ in range(13)],
    )
    with source.connected() as connection:
        schema = read_schemas(connection, [source.name("t")])[0]
        prepare_session(connection)
        reader = ResultReader(connection, schema, b"")
        with pytest.raises(MySQLError):
            reader.read(
                f"SELECT id, v FROM {source.schema}.t WHERE id < 30000 OR id = (SELECT id FROM {source.schema}.t t2"
                f" WHERE t2.id < t.id LIMIT 2)",
                lambda _: None,
            )


def test_a_killed_connection_is_no_end_of_the_rows(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", "INSERT INTO t VALUES (1, 'x')")
    with source.connected() as connection:
        schema = read_schemas(connection, [source.name("t")])[0]
        number = connection.thread_id()
        threading.Timer(1, lambda: source.run(f"KILL {number}")).start()
        with pytest.raises((MySQLError, OSError)):
            ResultReader(connection, schema, b"").read(
                f"SELECT id, v FROM {source.schema}.t WHERE SLEEP(5) = 0", lambda _: None
            )
        connection._force_close()


def test_a_table_altered_since_is_refused(source: SourceServer) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v INT, w DATETIME(3), x VARCHAR(9), y DECIMAL(9,3))")
    with source.connected() as connection:
        schema = read_schemas(connection, [source.name("t")])[0]
    for change in (
        "v INT UNSIGNED",
        "v BIGINT",
        "w DATETIME(4)",
        "x VARBINARY(9)",
        "y DECIMAL(9,2)",
        "x ENUM('a')",
        "x VARCHAR(9) CHARACTER SET gbk",
        "x VARCHAR(9) CHARACTER SET latin1",
    ):
        source.run(f"ALTER TABLE t MODIFY {change}")
        with source.connected() as connection, pytest.raises(DataError) as caught:
            prepare_session(connection)
            ResultReader(connection, schema, b"").read(f"SELECT id, v, w, x, y FROM {source.schema}.t", lambda _: None)
        assert caught.value.where["column"] == change[0]
        source.run(
            "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, v INT, w DATETIME(3), x VARCHAR(9), y DECIMAL(9,3))"
        )
