"""All column types. To add one: a record here, and an operation of both kernels if its encoding is new.

`tests/unit/types` then fails for parts that the type still lacks: see CONTRIBUTING.md. Sources: MySQL manual, "Data
Types"; MariaDB manual, "Data Types"; `enum_field_types` of both servers; Iceberg specification, "Schemas and Data
Types".
"""

from __future__ import annotations

from collections.abc import Callable

from loader.errors import UnsupportedError
from loader.model.table import Column, TableName
from loader.types.column_type import ColumnType, Comparison, Encoding, Form, KeyBound

_MAX_DECIMAL = 38  # digits of DECIMAL in Spark and Iceberg; MySQL has 65
_UNSIGNED_64 = "decimal(20,0)"

_CAST = "CAST({} AS CHAR CHARACTER SET utf8mb4)"
_CONVERT = "CONVERT({} USING utf8mb4)"
"""On MariaDB, CAST and HEX return NULL if the result is longer than max_allowed_packet."""
_NUMBER = "CAST({} + 0 AS CHAR CHARACTER SET utf8mb4)"  # without the zeros of ZEROFILL
_DOUBLE = "CAST({} AS DOUBLE)"
"""A number and no text: servers round the texts of DOUBLE(M,D) and FLOAT, and MySQL those of expressions."""
_HEX = "HEX({})"


def _always(text: str) -> Callable[[Column], str]:
    return lambda _: text


def _unsigned(signed: str, unsigned: str) -> Callable[[Column], str]:
    return lambda column: unsigned if column.unsigned else signed


def _decimal(column: Column) -> str:
    return f"decimal({column.size},{column.scale})" if column.size <= _MAX_DECIMAL else "string"


def _bit(column: Column) -> str:
    return "bigint" if column.size < 64 else _UNSIGNED_64


def _moment(column: Column) -> str:
    fraction = "." + "S" * column.size if column.size else ""
    return f"date_format({{}}, 'yyyy-MM-dd HH:mm:ss{fraction}')"


_AS_STRING = _always("cast({} as string)")


def _integer(name: str, words: str, number: int, sizes: tuple[int, int], spark: Callable[[Column], str]) -> ColumnType:
    return ColumnType(
        name, tuple(words.split()), Encoding.INTEGER, Form.NUMBER, spark, KeyBound.NUMBER, _NUMBER, _AS_STRING,
        log_type=number, log_bytes=sizes[0], result_type=number, result_bytes=sizes[1],
    )  # fmt: skip


def _text(name: str, words: str) -> ColumnType:
    return ColumnType(
        name, tuple(words.split()), Encoding.TEXT, Form.TEXT, _always("string"), KeyBound.BYTES, _CONVERT, _AS_STRING
    )


def _bytes(name: str, words: str = "", log_type: int = 0, result_type: int = 0) -> ColumnType:
    return ColumnType(
        name, tuple(words.split()), Encoding.BYTES, Form.HEX, _always("binary"), KeyBound.BYTES, "{}",
        _always("hex({})"), log_type=log_type, log_metadata=1 if log_type else 0, result_type=result_type,
    )  # fmt: skip


def _address(name: str, encoding: Encoding) -> ColumnType:
    return ColumnType(
        name, (name.upper(),), encoding, Form.TEXT, _always("string"), KeyBound.ADDRESS, _CAST, _AS_STRING
    )


def _labels(name: str, encoding: Encoding, log_type: int) -> ColumnType:
    return ColumnType(
        name, (name.upper(),), encoding, Form.TEXT, _always("string"), KeyBound.INDEX, _CAST, _AS_STRING,
        log_type=log_type, log_metadata=2,
    )  # fmt: skip


def _temporal(
    encoding: Encoding, spark: str, log_type: int, metadata: int, log_bytes: int, result_type: int,
    text: Callable[[Column], str] = _AS_STRING,
) -> ColumnType:  # fmt: skip
    return ColumnType(
        encoding.name.lower(), (encoding.name,), encoding, Form.TEMPORAL, _always(spark), KeyBound.TEMPORAL, _CAST,
        text, log_type=log_type, log_metadata=metadata, log_bytes=log_bytes, result_type=result_type,
    )  # fmt: skip


TYPES = (
    _integer("tinyint", "TINYINT INT1 BOOL BOOLEAN", 1, (1, 1), _always("int")),
    _integer("smallint", "SMALLINT INT2", 2, (2, 2), _always("int")),
    _integer("mediumint", "MEDIUMINT INT3 MIDDLEINT", 9, (3, 4), _always("int")),
    _integer("int", "INT INTEGER INT4", 3, (4, 4), _unsigned("int", "bigint")),
    _integer("bigint", "BIGINT INT8", 8, (8, 8), _unsigned("bigint", _UNSIGNED_64)),
    ColumnType(
        "float", ("FLOAT", "FLOAT4"), Encoding.FLOAT, Form.NUMBER, _always("float"), KeyBound.FLOAT,
        _DOUBLE, _AS_STRING, Comparison.SINGLE,
        log_type=4, log_metadata=1, log_bytes=4, result_type=4, result_bytes=4,
    ),
    ColumnType(
        "double", ("FLOAT8", "DOUBLE", "REAL"), Encoding.DOUBLE, Form.NUMBER, _always("double"), KeyBound.FLOAT,
        _DOUBLE, _AS_STRING, Comparison.DOUBLE,
        log_type=5, log_metadata=1, log_bytes=8, result_type=5, result_bytes=8,
    ),
    ColumnType(
        "decimal", ("DECIMAL", "DEC", "NUMERIC", "FIXED"), Encoding.DECIMAL, Form.NUMBER, _decimal, KeyBound.NUMBER,
        _NUMBER, _AS_STRING, log_type=246, log_metadata=2, result_type=246,
    ),
    ColumnType(
        "bit", ("BIT",), Encoding.BIT, Form.NUMBER, _bit, KeyBound.INDEX, "CAST({} + 0 AS CHAR)", _AS_STRING,
        log_type=16, log_metadata=2, result_type=16,
    ),
    ColumnType(
        "year", ("YEAR",), Encoding.YEAR, Form.NUMBER, _always("int"), KeyBound.YEAR, _CAST,
        _always("lpad(cast({} as string), 4, '0')"), log_type=13, log_bytes=1, result_type=13, result_bytes=2,
    ),
    _temporal(Encoding.DATE, "date", 10, 0, 3, 10),
    _temporal(Encoding.TIME, "string", 19, 1, 3, 11),
    _temporal(Encoding.DATETIME, "timestamp_ntz", 18, 1, 5, 12, _moment),
    _temporal(Encoding.TIMESTAMP, "timestamp", 17, 1, 4, 7, _moment),
    _labels("enum", Encoding.ENUM, 247),
    _labels("set", Encoding.SET, 248),
    _text("char", "CHAR CHARACTER NCHAR"),
    _text("varchar", "VARCHAR VARCHARACTER NVARCHAR"),
    _text("tinytext", "TINYTEXT"),
    _text("text", "TEXT"),
    _text("mediumtext", "MEDIUMTEXT"),
    _text("longtext", "LONGTEXT"),
    _bytes("binary", "BINARY"),
    _bytes("varbinary", "VARBINARY"),
    _bytes("tinyblob", "TINYBLOB"),
    _bytes("blob", "BLOB"),
    _bytes("mediumblob", "MEDIUMBLOB"),
    _bytes("longblob", "LONGBLOB"),
    _bytes(
        "geometry",
        "GEOMETRY POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON GEOMCOLLECTION GEOMETRYCOLLECTION",
        255, 255,
    ),
    ColumnType(
        "json", ("JSON",), Encoding.JSON, Form.TEXT, _always("string"), KeyBound.BYTES, _CAST, _AS_STRING,
        log_type=245, log_metadata=1, result_type=245,
    ),
    ColumnType(
        "vector", ("VECTOR",), Encoding.VECTOR, Form.TEXT, _always("string"), KeyBound.BYTES, _HEX, _AS_STRING,
        Comparison.VECTOR, log_type=242, log_metadata=1, result_type=242,
    ),
    _address("uuid", Encoding.UUID),
    _address("inet4", Encoding.INET4),
    _address("inet6", Encoding.INET6),
)  # fmt: skip

_BY_NAME = {known.name: known for known in TYPES}


def type_of(column: Column, table: TableName | None = None) -> ColumnType:
    """Return the type of a column.

    Raises:
        UnsupportedError: the loader does not support the type.
    """
    found = _BY_NAME.get(column.type)
    if found is None:
        raise UnsupportedError(
            f"column type {column} is not supported by this version",
            hint=table.exclusion if table else "exclude the table (tables.exclude of the source)",
            table=table,
            column=column.name,
        )
    return found


def names_of(*encodings: Encoding) -> frozenset[str]:
    """Return the names of all types with one of these encodings."""
    return frozenset(known.name for known in TYPES if known.encoding in encodings)


def declared_as(*encodings: Encoding) -> dict[str, str]:
    """Return the name of the type for each DDL word of the types with one of these encodings."""
    return {word: known.name for known in TYPES if known.encoding in encodings for word in known.declared}
