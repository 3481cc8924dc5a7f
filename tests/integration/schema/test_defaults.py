"""A new column has the value of the server in existing rows, or its default is refused: defaults in unusual forms."""

from __future__ import annotations

import pymysql
import pytest

from loader.schema.changes import AddColumn, Altered
from loader.schema.constants import NotLoggedError, existing_row_value
from loader.schema.statement_reader import table_changes
from loader.source.schemas import read_schemas
from loader.transport.server.connection import connected
from tests.integration.binlog.source import Source, expected, name_of, shown

pytestmark = pytest.mark.integration

DECLARED = (
    "TIME DEFAULT '10:00:00'",
    "TIME DEFAULT '100:00:00'",
    "TIME DEFAULT '010:00:00'",
    "TIME DEFAULT '000:00:00'",
    "TIME(3) DEFAULT '-010:00:00.5'",
    "FLOAT UNSIGNED DEFAULT '-1'",
    "DOUBLE UNSIGNED NOT NULL DEFAULT '-1.5'",
    "DECIMAL(5,1) UNSIGNED DEFAULT '-1'",
    "DECIMAL(5,1) UNSIGNED DEFAULT (-1)",
    "FLOAT(10,2) NOT NULL DEFAULT '0.00'",
    "DOUBLE(8,2) DEFAULT 0",
    "DECIMAL(10,2) DEFAULT 0.000",
    "DECIMAL(5,2) DEFAULT '-100.500'",
    "INT UNSIGNED DEFAULT (-1)",
    "YEAR DEFAULT (70)",
    "VARCHAR(2) DEFAULT ('abc')",
    "VARCHAR(2) CHARACTER SET latin1 DEFAULT ('é')",
    "VARCHAR(2) CHARACTER SET latin1 DEFAULT ('漢')",
    "DATE DEFAULT ('2024-02-29')",
    "DATE DEFAULT ('2024-02-31')",
    "DATE DEFAULT ('2024-13-01')",
    "DATETIME DEFAULT ('2024-01-01 25:00:00')",
    "DATETIME(3) DEFAULT ('2024-02-30 10:00:00.5')",
    "TIME DEFAULT ('837:59:59')",
    "TIME DEFAULT ('900:00:00')",
    "TIME(1) DEFAULT ('-838:59:59.5')",
    "TIME DEFAULT ('10:70:00')",
    "ENUM('a', 'b') DEFAULT 'b'",
    "ENUM('a', 'A') DEFAULT 'A'",
    "ENUM('é', 'e') NOT NULL DEFAULT 'e'",
    "SET('a', 'é', 'e') DEFAULT 'e,a'",
)


def loaded_value(statement: str, mariadb: bool, strict: bool) -> tuple[str | None] | None:
    """The value that the loader gives to existing rows; None if it refuses the statement."""
    (change,) = table_changes(statement, "", 0, mariadb)
    assert isinstance(change, Altered), change
    (action,) = change.actions
    assert isinstance(action, AddColumn), action
    try:
        return (existing_row_value(action.definition, strict=strict),)
    except NotLoggedError:
        return None


@pytest.mark.parametrize("sql_mode", ["STRICT_TRANS_TABLES", ""])
@pytest.mark.parametrize("declared", DECLARED)
def test_a_new_column_has_the_value_of_the_server(source: Source, declared: str, sql_mode: str) -> None:
    source.run("DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT) CHARACTER SET utf8mb4", "INSERT INTO t VALUES (1)")
    statement = f"ALTER TABLE t ADD v {declared}"
    try:
        source.run(f"SET SESSION sql_mode = '{sql_mode}'", statement)
    except pymysql.MySQLError:
        return  # the server refuses it as well
    with connected(source.address) as connection:
        column = read_schemas(connection, [name_of(source, "t")])[0].column("v")
    ((value,),) = source.rows(f"SELECT {shown(column)} FROM t")
    loaded = loaded_value(statement, source.kind == "mariadb", bool(sql_mode))
    assert loaded in (None, (expected(column, value),))
