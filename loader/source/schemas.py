"""The schemas of tables from the server's catalog, equal to the schemas from its log.

Equal means the same schema_id that `loader.binlog.events.table_map` gives a FULL table map, including the properties
that MariaDB's log lacks: see read_ambiguous_tables. One difference remains: the catalog is utf8mb3, so a four-byte
character in an ENUM or SET label reads as `?`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from loader.binlog.values.codepages import is_supported
from loader.errors import UnsupportedError, UsageError
from loader.model.engines import FOREIGN_ENGINES, NO_ROWS
from loader.model.ranges import check_ranges
from loader.model.table import SEQUENCE, Column, TableName, TableSchema
from loader.resources import sql
from loader.types.catalogue import declared_as, names_of
from loader.types.column_type import Encoding
from loader.types.warehouse import spark_type

_GEOMETRIES = {word.lower() for word, name in declared_as(Encoding.BYTES).items() if name == "geometry"}
_OLD_FORMAT = " /* mariadb-5.3 */"
_SIZED = {"decimal": "precision", "bit": "precision", "binary": "length"}
_INTEGERS = names_of(Encoding.INTEGER)
_FRACTIONAL = names_of(Encoding.DATETIME, Encoding.TIMESTAMP, Encoding.TIME)
_LABELLED = names_of(Encoding.ENUM, Encoding.SET)
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r"}


@dataclass(frozen=True)
class ColumnDescription:
    """A row of information_schema.COLUMNS. NULL numbers become 0, NULL names become empty."""

    table: str
    name: str
    ordinal: int
    type: str
    declared: str
    precision: int
    scale: int
    fraction: int
    charset: str
    length: int


@dataclass(frozen=True)
class KeyPart:
    """A column of a key. `prefix`: the key contains only the beginning of its values."""

    name: str
    descending: bool = False
    prefix: bool = False


@dataclass(frozen=True)
class TableKey:
    """The key of a table, in key order, and the index that contains it."""

    index: str
    parts: tuple[KeyPart, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(part.name for part in self.parts)


def find_tables(connection: Connection[Any], captured: Callable[[TableName], bool]) -> list[TableName]:
    """Return the captured tables that the server has and the user may see, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(sql("source/schemas_names"))
        names = [TableName(str(schema), str(table)) for schema, table in cursor.fetchall()]
    return sorted(name for name in names if captured(name))


def find_sequences(connection: Connection[Any], captured: Callable[[TableName], bool]) -> list[TableName]:
    """Return MariaDB's sequences that match the filter, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(sql("source/sequences"))
        names = [TableName(str(schema), str(table)) for schema, table in cursor.fetchall()]
    return sorted(name for name in names if captured(name))


def read_schemas(connection: Connection[Any], names: Iterable[TableName]) -> list[TableSchema]:
    """Return the schemas of the tables, in the order of `names`.

    Raises:
        UsageError: a table does not exist, or the user may not see it.
        UnsupportedError: a column type or a kind of table is not supported.
    """
    asked = list(names)
    found: dict[TableName, TableSchema] = {}
    for schema in dict.fromkeys(name.schema for name in asked):
        tables = [name for name in asked if name.schema == schema]
        _check_tables(connection, schema, tables)
        for name, columns in read_columns(connection, schema, tables).items():
            key = read_key(connection, name)
            found[name] = build_schema(name, columns, key.names if key else ())
    return [found[name] for name in asked]


def read_unlogged(connection: Connection[Any], name: TableName) -> tuple[str, ...]:
    """Return the generated columns of a MariaDB table, which row images may omit even if they change.

    MySQL logs generated columns that change. MariaDB omits virtual columns from MINIMAL images of updates. From version
    11 on it omits all generated columns, also from FULL images (seen on both servers, several versions).
    """
    if "mariadb" not in connection.get_server_info().lower():
        return ()
    with connection.cursor() as cursor:
        cursor.execute(sql("source/schemas_generated"), (name.schema, name.table))
        return tuple(str(column) for (column,) in cursor.fetchall())


def read_ambiguous_tables(connection: Connection[Any], captured: Callable[[TableName], bool]) -> list[TableSchema]:
    """Return the captured tables that the server's log describes incompletely, as they are now, without keys.

    These are MariaDB tables with a UUID, INET4, INET6 or VECTOR, which its log describes as BINARY or VARBINARY. Tables
    with temporal columns in the format of MariaDB 5.3 also count, because the log lacks their fractional digits.
    """
    if "mariadb" not in connection.get_server_info().lower():
        return []
    found = []
    names = find_tables(connection, captured)
    for schema in dict.fromkeys(name.schema for name in names):
        with connection.cursor() as cursor:
            cursor.execute(sql("source/ambiguous_tables"), (schema,))
            ambiguous = {str(table) for (table,) in cursor.fetchall()}
        tables = [name for name in names if name.schema == schema and name.table in ambiguous]
        for name, columns in (read_columns(connection, schema, tables) if tables else {}).items():
            if not columns:
                continue  # it was dropped or renamed meanwhile, as the copies of online schema changes are
            _check_whole(name, columns)
            found.append(TableSchema(name, tuple(map(_plain, columns)), ()))
            check_ranges(found[-1])
    return found


def read_key(connection: Connection[Any], name: TableName) -> TableKey | None:
    """Return the primary key, or else the key that the server uses and logs as one; None if there is neither.

    That is the first unique key in the server's order whose columns are whole, NOT NULL and not virtual.
    """
    for index, parts in _unique_indexes(connection, name).items():
        whole = all(part["column_name"] and not part["sub_part"] and not part["null"] for part in parts)
        key = TableKey(index, tuple(_part(part) for part in parts))
        if index == "PRIMARY" or (whole and _virtual_columns(connection, name).isdisjoint(key.names)):
            return key
    return None


def _virtual_columns(connection: Connection[Any], name: TableName) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW COLUMNS FROM {quote_table(name)}")
        return {str(column) for column, *_, extra in cursor.fetchall() if "VIRTUAL GENERATED" in str(extra)}


def quote_name(name: str) -> str:
    """Return the name as a quoted identifier in SQL."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(table: TableName) -> str:
    """Return the name of a table, with its schema, as quoted identifiers in SQL."""
    return f"{quote_name(table.schema)}.{quote_name(table.table)}"


def _unique_indexes(connection: Connection[Any], name: TableName) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of SHOW INDEX for each unique index, keyed by lower-case title."""
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW INDEX FROM {quote_table(name)}")
        titles = [str(field[0]).lower() for field in cursor.description]
        rows = [dict(zip(titles, row, strict=True)) for row in cursor.fetchall()]
    indexes: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if not row["non_unique"]:
            indexes.setdefault(str(row["key_name"]), []).append(row)
    return indexes


def _part(row: dict[str, Any]) -> KeyPart:
    return KeyPart(str(row["column_name"]), row["collation"] == "D", bool(row["sub_part"]))


def _check_tables(connection: Connection[Any], schema: str, names: list[TableName]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql("source/schemas_tables"), (schema, catalog_names(names)))
        known = {str(table): (str(kind), str(engine)) for table, kind, engine in cursor.fetchall()}
    for name in names:
        if name.table not in known:
            raise _missing_error(name)
        kind, engine = known[name.table]
        if kind == "SYSTEM VERSIONED":
            raise UnsupportedError(
                "system-versioned tables are not supported",
                why="their log also contains the history of rows",
                hint=f"{name.exclusion}, or run ALTER TABLE {name} DROP SYSTEM VERSIONING and load it",
                table=name,
            )
        if engine.upper() in FOREIGN_ENGINES:
            raise _refused(name, f"tables of engine {engine} are not supported", NO_ROWS)
        hashed = any(row["index_type"] == "HASH" for rows in _unique_indexes(connection, name).values() for row in rows)
        if hashed and engine != "MEMORY":
            raise _refused(
                name,
                "unique keys of unlimited length are not supported",
                "MariaDB stores their hash in a hidden column, which its log contains as well",
            )


def _missing_error(table: TableName) -> UsageError:
    return UsageError(
        "the table does not exist, or the user may not see it",
        hint="check the name, its case, and the SELECT privilege (see sql/source/grants.sql)",
        table=table,
    )


def _refused(table: TableName, what: str, why: str) -> UnsupportedError:
    return UnsupportedError(what, why=why, hint=table.exclusion, table=table)


def read_columns(
    connection: Connection[Any], schema: str, names: Sequence[TableName]
) -> dict[TableName, list[ColumnDescription]]:
    """Return the columns of some tables of one schema. The user may not see all columns."""
    found: dict[TableName, list[ColumnDescription]] = {name: [] for name in names}
    with connection.cursor() as cursor:
        cursor.execute(sql("source/schemas_columns"), (schema, catalog_names(names)))
        rows = [_read(row) for row in cursor.fetchall()]
    for row in rows:
        # Some servers compare names in the catalog without case.
        if (name := TableName(schema, row.table)) in found:
            found[name].append(row)
    return found


def catalog_names(names: Sequence[TableName]) -> tuple[str, ...]:
    """Return the values of `TABLE_NAME IN` that find some tables of one schema in the catalog, and maybe others.

    If all values are equal without case and accents, MariaDB looks up only the first one (seen on 10.11 and 11.8). The
    empty name, which no table has, prevents that. Without it, a single table is found without a search of its schema.
    """
    found = tuple(name.table for name in names)
    return found if len(found) == 1 else (*found, "")


def build_schema(name: TableName, columns: list[ColumnDescription], key: tuple[str, ...]) -> TableSchema:
    """Return the schema of a table with these columns.

    Raises:
        UsageError: the user may not see all columns.
        UnsupportedError: a column type is not supported.
        DataError: a size or precision is beyond the limits of its type.
    """
    _check_whole(name, columns)
    if tuple(column.name for column in columns) == SEQUENCE:
        raise _refused(
            name, "the table has the columns of a sequence", "the log of MariaDB does not distinguish the two"
        )
    schema = TableSchema(name, tuple(_column(name, column) for column in columns), key)
    check_ranges(schema)
    return schema


def _read(row: tuple[Any, ...]) -> ColumnDescription:
    table, name, ordinal, kind, declared, precision, scale, fraction, charset, length = row
    kind = "geometry" if kind.lower() in _GEOMETRIES else kind.lower()
    return ColumnDescription(
        table,
        name,
        int(ordinal),
        kind,
        declared,
        int(precision or 0),
        int(scale or 0),
        int(fraction or 0),
        "utf8mb3" if charset == "utf8" else charset or "",
        int(length or 0),
    )


def _check_whole(name: TableName, columns: list[ColumnDescription]) -> None:
    """Refuse a table whose columns are partly hidden by column privileges. It would be read without them."""
    if not columns:
        raise _missing_error(name)
    if [column.ordinal for column in columns] != list(range(1, len(columns) + 1)):
        raise UsageError(
            "the user may not see all columns of the table",
            hint="grant SELECT on the whole table (see sql/source/grants.sql)",
            table=name,
        )


def _column(table: TableName, description: ColumnDescription) -> Column:
    column = _plain(description)
    spark_type(column, table)
    labelled = column.type in _LABELLED
    # The server writes properties unknown to old versions in comments, and YEAR(2) hides the century.
    declared = description.declared.replace("/*M!100301 COMPRESSED*/", "").removesuffix(_OLD_FORMAT)
    if declared == "year(2)" or (not labelled and "/*" in declared):
        raise _not_covered(table, column, declared)
    if column.charset and not is_supported(column.charset) and not (labelled and column.charset == "binary"):
        raise _not_covered(table, column, f"{description.declared} in {column.charset}")
    return column


def _plain(description: ColumnDescription) -> Column:
    kind = description.type
    size = getattr(description, _SIZED[kind]) if kind in _SIZED else 0
    labels = labels_of(description.declared) if kind in _LABELLED else ()
    return Column(
        description.name,
        kind,
        unsigned=kind in _INTEGERS and "unsigned" in description.declared,
        size=description.fraction if kind in _FRACTIONAL else size,
        scale=description.scale if kind == "decimal" else 0,
        charset=description.charset or ("binary" if labels else ""),
        labels=labels,
    )


def _not_covered(table: TableName, column: Column, declared: str) -> UnsupportedError:
    return UnsupportedError(
        f"column type {declared} is not supported by this version",
        hint=table.exclusion,
        table=table,
        column=column.name,
    )


def labels_of(declared: str) -> tuple[str, ...]:
    """Return the labels of a COLUMN_TYPE such as `enum('a','it''s')`, as the server's `append_unescaped` writes it."""
    return tuple(_ESCAPED.sub(_unescaped, label) for label in _LABEL.findall(declared))


def _unescaped(found: re.Match[str]) -> str:
    letter = found[1]
    return "'" if letter is None else _ESCAPES.get(letter, letter)
