"""Tables, columns, schemas and who a server is."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.model.identity import Identity
from loader.model.table import Column, TableName, TableSchema

TEXT = st.text(max_size=20)
WORD = st.sampled_from(["int", "varchar", "utf8mb4", "latin1", "a b", "x", ""])
LABELS = st.lists(TEXT, max_size=4).map(tuple)
COLUMNS = st.one_of(
    st.builds(Column, name=TEXT, type=WORD, unsigned=st.booleans(), charset=WORD),
    st.builds(Column, name=TEXT, type=st.sampled_from(["enum", "set"]), charset=WORD, labels=LABELS),
    st.builds(Column, name=TEXT, type=st.just("decimal"), size=st.integers(30, 65), scale=st.integers(0, 30)),
    st.builds(Column, name=TEXT, type=st.sampled_from(["datetime", "timestamp", "time"]), size=st.integers(0, 6)),
    st.builds(Column, name=TEXT, type=st.just("binary"), size=st.integers(0, 255)),
)


@st.composite
def schemas(draw: st.DrawFn) -> TableSchema:
    columns = draw(st.lists(COLUMNS, max_size=5, unique_by=lambda column: column.name))
    names = [column.name for column in columns]
    key = draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else []
    return TableSchema(draw(st.builds(TableName, TEXT, TEXT)), tuple(columns), tuple(key))


SCHEMAS = schemas()
KIND = Column("kind", "enum", charset="utf8mb4", labels=("a", "b"))
ORDERS = TableSchema(TableName("shop", "orders"), (Column("id", "int"), KIND), ("id",))


@given(SCHEMAS)
def test_a_schema_is_read_back_from_its_data(schema: TableSchema) -> None:
    data = json.loads(json.dumps(schema.as_dict()))
    assert data == schema.as_dict(), "plain data is the same after JSON"
    assert TableSchema.from_dict(data) == schema
    assert TableSchema.from_dict(data).schema_id == schema.schema_id


@given(SCHEMAS, SCHEMAS)
def test_two_schemas_share_an_id_only_when_they_are_equal(a: TableSchema, b: TableSchema) -> None:
    assert (a.schema_id == b.schema_id) == (a == b)


def test_the_id_of_a_schema_is_what_it_always_was() -> None:
    """It stands in the keys of staged files."""
    assert ORDERS.schema_id == "b92d0eaf2a436c44"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Id"},
        {"type": "bigint"},
        {"unsigned": True},
        {"size": 1},
        {"scale": 1},
        {"charset": "x"},
        {"labels": ("a",)},
    ],
)
def test_whatever_shapes_the_text_changes_the_id(change: dict[str, object]) -> None:
    changed = replace(ORDERS, columns=(replace(ORDERS.columns[0], **change), ORDERS.columns[1]))
    assert changed.schema_id != ORDERS.schema_id


def test_key_and_order_of_columns_change_the_id() -> None:
    ids = {ORDERS.schema_id, replace(ORDERS, key=()).schema_id, replace(ORDERS, columns=ORDERS.columns[::-1]).schema_id}
    assert len(ids) == 3


def test_columns_are_found_by_name() -> None:
    assert ORDERS.column("kind") is ORDERS.columns[1]
    with pytest.raises(KeyError):
        ORDERS.column("Kind")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (Column("a", "int"), "int"), (Column("a", "int", unsigned=True), "int unsigned"),
        (Column("a", "decimal", size=10, scale=2), "decimal(10,2)"), (Column("a", "decimal", size=5), "decimal(5,0)"),
        (Column("a", "datetime", size=6), "datetime(6)"), (Column("a", "datetime"), "datetime"),
        (Column("a", "bit", size=12), "bit(12)"), (Column("a", "enum", labels=("a", "b")), "enum('a','b')"),
    ],
)  # fmt: skip
def test_a_column_reads_as_in_sql(column: Column, text: str) -> None:
    assert str(column) == text


@pytest.mark.parametrize("text", ["shop.orders", "shop.a.b", "shop.", ".orders"])
def test_a_table_s_name_is_read_back(text: str) -> None:
    assert str(TableName.parse(text)) == text


def test_mysql_servers_are_told_apart_by_uuid_and_mariadb_s_by_id() -> None:
    mysql = Identity(kind="mysql", version="8.4.0", server_id=1, uuid="a")
    assert mysql.same_server(mysql.model_copy(update={"version": "9.7.4", "server_id": 2}))
    assert not mysql.same_server(mysql.model_copy(update={"uuid": "b"}))
    mariadb = Identity(kind="mariadb", version="10.11", server_id=1)
    assert mariadb.same_server(mariadb.model_copy(update={"version": "11.4"}))
    assert not mariadb.same_server(mariadb.model_copy(update={"server_id": 2}))
    assert not mariadb.same_server(mysql)


def test_a_server_in_words() -> None:
    assert str(Identity(kind="mariadb", version="11.8", server_id=1)) == "mariadb 11.8, server id 1"
    mysql = Identity(kind="mysql", version="8.4.3", server_id=2, uuid="3e11fa47")
    assert str(mysql) == "mysql 8.4.3, server id 2, UUID 3e11fa47"


@given(st.text(min_size=1, alphabet="a.`b' "), st.text(min_size=1, alphabet="a.`b' "))
def test_the_text_of_a_table_stands_for_it_alone(schema: str, table: str) -> None:
    name = TableName(schema, table)
    assert TableName.parse(str(name)) == name
    assert shlex.split(name.argument) == [str(name)]


def test_only_a_schema_with_a_point_is_quoted() -> None:
    assert str(TableName("shop", "a.b")) == "shop.a.b"
    assert str(TableName("a.b", "c`d")) == "`a.b`.c`d"
