"""Schemas that no server can have are refused wherever they come from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pymysql.protocol import FieldDescriptorPacket

from loader.binlog.program import compile_program as log_program
from loader.errors import DataError, StagedDataError
from loader.initial_load.result_set.program import compile_program as load_program
from loader.model.ranges import explain_invalid_schema
from loader.model.table import Column, TableName, TableSchema
from loader.source.schemas import ColumnDescription, build_schema

NAME = TableName("shop", "orders")
GOOD = {
    "decimal": [(1, 0), (65, 30), (38, 38), (10, 10)],
    "bit": [(1, 0), (64, 0)],
    "binary": [(0, 0), (255, 0)],
    "datetime": [(0, 0), (6, 0)],
    "timestamp": [(0, 0), (6, 0)],
    "time": [(0, 0), (6, 0)],
    "int": [(0, 0)],
    "double": [(0, 0)],
}
BAD = {
    "decimal": [(0, 0), (66, 0), (-1, 0), (5, 6), (5, -1), (10**9, 2)],
    "bit": [(0, 0), (65, 0), (8, 1)],
    "binary": [(-1, 0), (256, 0)],
    "datetime": [(7, 0), (200, 0), (-1, 0), (3, 1)],
    "timestamp": [(7, 0), (200, 0), (-1, 0)],
    "time": [(7, 0), (200, 0), (-1, 0)],
    "int": [(1, 0), (0, 1)],
    "float": [(200, 0)],
    "date": [(6, 0)],
    "varchar": [(6, 0)],
}
SIZES = {
    name: [(kind, *sizes) for kind, all_ in table.items() for sizes in all_]
    for name, table in (("good", GOOD), ("bad", BAD))
}


def table(*columns: Column, key: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema(NAME, columns, key)


@pytest.mark.parametrize(("kind", "size", "scale"), SIZES["good"])
def test_every_size_of_a_type_is_taken(kind: str, size: int, scale: int) -> None:
    schema = table(Column("a", kind, size=size, scale=scale))
    assert explain_invalid_schema(schema) == ""
    assert TableSchema.from_dict(schema.as_dict()) == schema


@pytest.mark.parametrize(("kind", "size", "scale"), SIZES["bad"])
def test_no_program_is_made_for_a_size_beyond_its_type(kind: str, size: int, scale: int) -> None:
    schema = table(Column("a", kind, size=size, scale=scale))
    described: Any = [object.__new__(FieldDescriptorPacket)]
    for attribute, value in {"type_code": 12, "flags": 0, "scale": size, "length": size, "name": "a"}.items():
        setattr(described[0], attribute, value)
    for run in (lambda: log_program(schema, (0,)), lambda: load_program(schema, described)):
        with pytest.raises(DataError, match="the definition of a table is invalid") as caught:
            run()
        assert caught.value.where["table"] == "shop.orders"
    with pytest.raises(StagedDataError, match="the schema of a table in a document is invalid"):
        TableSchema.from_dict(schema.as_dict())


@pytest.mark.parametrize("size", [7, 200, -1])
@pytest.mark.parametrize("kind", ["datetime", "timestamp", "time"])
def test_a_catalog_with_too_many_digits_is_refused(kind: str, size: int) -> None:
    column = ColumnDescription("orders", "a", 1, kind, f"{kind}({size})", 0, 0, size, "", 0)
    with pytest.raises(DataError, match="the definition of a table is invalid"):
        build_schema(NAME, [column], ())


@pytest.mark.parametrize(
    "schema",
    [
        table(Column("a", "enum", charset="utf8mb4", labels=("x",) * 65536)),
        table(Column("a", "set", charset="utf8mb4", labels=tuple(map(str, range(65))))),
        table(Column("a", "int", labels=("x",))),
        table(Column("a", "int"), Column("a", "int")),
        table(Column("a", "int"), key=("b",)),
        table(Column("a", "int"), key=("a", "a")),
    ],
)
def test_labels_names_and_keys_that_cannot_be(schema: TableSchema) -> None:
    assert explain_invalid_schema(schema)
    with pytest.raises(DataError):
        log_program(schema, (0,) * len(schema.columns))


SCHEMA = table(
    Column("a", "decimal", size=10, scale=2), Column("b", "enum", charset="latin1", labels=("x",)), key=("a",)
)


def changed(field: str, value: object, *, column: bool = True) -> dict[str, Any]:
    data = SCHEMA.as_dict()
    (data["columns"][0] if column else data)[field] = value
    return data


@pytest.mark.parametrize(
    "data",
    [
        changed("scale", "0) LOCATION 's3a://elsewhere/' -- "),
        changed("size", "10"),
        changed("size", 10.0),
        changed("size", True),
        changed("scale", None),
        changed("unsigned", 1),
        changed("name", 5),
        changed("type", ["decimal"]),
        changed("labels", "xy"),
        changed("labels", [1]),
        changed("labels", {"x": 1}),
        changed("more", 1),
        changed("key", "a", column=False),
        changed("key", [None], column=False),
        changed("schema", 1, column=False),
        changed("columns", {}, column=False),
        changed("columns", [[]], column=False),
        changed("more", 1, column=False),
        {},
        [],
        None,
        "SELECT 1",
    ],
)
def test_a_document_with_other_types_of_fields_is_refused(data: object) -> None:
    with pytest.raises(StagedDataError, match="the schema of a table in a document is invalid") as caught:
        TableSchema.from_dict(data)
    assert caught.value.why
    assert len(caught.value.why) < 1000


def test_a_document_that_lacks_a_field_is_refused() -> None:
    for field in SCHEMA.as_dict():
        data = SCHEMA.as_dict()
        del data[field]
        with pytest.raises(StagedDataError):
            TableSchema.from_dict(data)
    for field in SCHEMA.as_dict()["columns"][0]:
        data = SCHEMA.as_dict()
        del data["columns"][0][field]
        with pytest.raises(StagedDataError):
            TableSchema.from_dict(data)
    assert TableSchema.from_dict(SCHEMA.as_dict()) == replace(SCHEMA)
