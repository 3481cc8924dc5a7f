"""Type changes that `evolve` accepts keep all values: the server is asked for every pair of types."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pymysql
import pytest

from loader.model.table import Column
from loader.schema.changes import Altered, ColumnDefinition, ModifyColumn
from loader.schema.constants import NotLoggedError
from loader.schema.statement_reader import table_changes
from loader.schema.type_preservation import as_column, fills_null_with_time, max_kept_length
from loader.source.schemas import read_schemas
from loader.transport.server.connection import connected
from tests.integration.binlog.source import Source, expected, name_of, shown
from tests.integration.schema.types import all_types

pytestmark = pytest.mark.integration
STRICT = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'"


@dataclass
class Typed:
    """A type with a table `from<number>` of its values, a row each and one with NULL."""

    number: int
    declared: str
    column: Column
    rows: int

    def definition(self, mariadb: bool) -> ColumnDefinition:
        (change,) = table_changes(f"ALTER TABLE t MODIFY v {self.declared}", "", 0, mariadb)
        assert isinstance(change, Altered), change
        (action,) = change.actions
        assert isinstance(action, ModifyColumn)
        return action.definition


def tables_of(source: Source) -> list[Typed]:
    types = all_types(source.kind)
    source.run("SET SESSION sql_mode = ''")
    for number, (declared, values) in enumerate(types.items()):
        rows = ", ".join(f"({row}, {value})" for row, value in enumerate((*values, "NULL")))
        source.run(
            f"CREATE TABLE from{number} (id INT, v {declared}) ENGINE=MyISAM CHARACTER SET utf8mb4",
            f"INSERT INTO from{number} VALUES {rows}",
        )
    with connected(source.address) as connection:
        schemas = read_schemas(connection, [name_of(source, f"from{number}") for number in range(len(types))])
    return [
        Typed(number, declared, schemas[number].column("v"), len(values) + 1)
        for number, (declared, values) in enumerate(types.items())
    ]


def values(source: Source, table: str, column: Column) -> dict[int, str | None]:
    return {row: expected(column, value) for row, value in source.rows(f"SELECT id, {shown(column)} FROM {table}")}


def altered(source: Source, one: Typed, other: Typed, null: str) -> dict[int, str | None]:
    """The values of those rows which the server takes over into the other type, all at once or each alone."""
    try:
        return _altered(source, one, other, null, "TRUE")
    except pymysql.MySQLError:
        found = {}
        for row in range(one.rows):
            try:
                found.update(_altered(source, one, other, null, f"id = {row}"))
            except pymysql.MySQLError:
                continue
        return found


def _altered(source: Source, one: Typed, other: Typed, null: str, which: str) -> dict[int, str | None]:
    source.run(
        "DROP TEMPORARY TABLE IF EXISTS pair",
        f"CREATE TEMPORARY TABLE pair (id INT, v {one.declared}) ENGINE=MyISAM CHARACTER SET utf8mb4",
        "SET SESSION sql_mode = ''",
        f"INSERT INTO pair SELECT * FROM from{one.number} WHERE {which}",
        STRICT,
        f"ALTER TABLE pair MODIFY v {other.declared.removesuffix(' NULL')} {null}",
    )
    return values(source, "pair", other.column)


def in_spark(column: Column, text: str | None) -> object:
    """What a staged text is as a value of the column's Spark type."""
    if text is None:
        return None
    if column.type in {"datetime", "timestamp"}:
        return re.sub(r"\.?0*$", "", text) if "." in text else text
    if column.type in {"float", "double"}:
        return float(np.float32(text)) if column.type == "float" else float(text)
    return text


def spared(one: Typed, definition: ColumnDefinition) -> Callable[[str | None], bool]:
    """Which values evolve does not vouch for."""
    longest = max_kept_length(one.column, definition)
    return lambda old: (
        fills_null_with_time(definition)
        if old is None
        else longest is not None and len(old) > longest and old[-1].isspace()
    )


def test_every_pair(source: Source) -> None:
    types, wrong, accepted, cut = tables_of(source), [], 0, 0
    for one, null in [(one, null) for one in types for null in ("NULL", "NOT NULL")]:
        before = values(source, f"from{one.number}", one.column)
        for other in types if null == "NULL" else [one]:
            definition = replace(other.definition(source.kind == "mariadb"), nullable=null == "NULL")
            assert replace(as_column(definition), charset=other.column.charset) == other.column
            try:
                excepted = spared(one, definition)
            except NotLoggedError:
                continue
            accepted += 1
            for row, text in altered(source, one, other, null).items():
                if in_spark(one.column, before[row]) != in_spark(other.column, text):
                    cut += excepted(before[row])
                    if not excepted(before[row]):
                        wrong.append((one.declared, other.declared, null, before[row], text))
    assert not wrong, "\n".join(map(str, wrong))
    assert accepted > 500
    assert cut > 10
