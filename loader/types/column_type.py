"""The record of a column type, and the choices that its fields have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from loader.model.table import Column


class Form(Enum):
    """How a value is written in a staged file."""

    NUMBER = "number"  # bare decimal text
    TEXT = "text"  # quoted, escaped, UTF-8
    HEX = "hex"  # quoted lower-case hex of the bytes
    TEMPORAL = "temporal"  # bare, as the server writes it; TIMESTAMP in UTC


class Encoding(Enum):
    """How servers encode values. The row kernel and the chunk kernel have an operation for each encoding."""

    INTEGER = auto()
    FLOAT = auto()
    DOUBLE = auto()
    DECIMAL = auto()
    BIT = auto()
    YEAR = auto()
    DATE = auto()
    TIME = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    ENUM = auto()
    SET = auto()
    TEXT = auto()
    BYTES = auto()
    JSON = auto()
    VECTOR = auto()
    UUID = auto()
    INET4 = auto()
    INET6 = auto()


class KeyBound(Enum):
    """How a key value is written as the bound of a chunk of an initial load."""

    NUMBER = auto()  # decimal text
    FLOAT = auto()  # shortest text that reads back to the same double-precision number
    INDEX = auto()  # decimal text of the number of the bits or labels, by which the server orders the column
    YEAR = auto()  # decimal text with the century
    TEMPORAL = auto()  # as the server writes it
    ADDRESS = auto()  # as the server writes it
    BYTES = auto()  # hex of the bytes, in the column's character set


class Comparison(Enum):
    """How verification compares the canonical texts of both sides."""

    TEXT = auto()  # as they are
    SINGLE = auto()  # as single-precision numbers
    DOUBLE = auto()  # as double-precision numbers
    VECTOR = auto()  # as the bytes of a vector


@dataclass(frozen=True)
class ColumnType:
    """A column type.

    Attributes:
        name: the server's name, as in `Column.type`.
        declared: the words for it in DDL that need no other rule, in upper case.
        encoding: how servers encode its values.
        form: how its values are staged.
        spark: the type in Spark SQL, and so in Iceberg, of a column: the narrowest that holds every value.
        key_bound: how a key value bounds a chunk of an initial load.
        server_text: MySQL expression for the canonical text of a column `{}`; of a binary column, for its bytes, and of
            a floating-point column, for its number.
        warehouse_text: Spark expression for the same text of a column `{}`.
        comparison: how these texts are compared.
        log_type: its type code in a table map; 0 for strings and addresses, which share the codes of binary strings.
        log_metadata: bytes of its metadata in a table map.
        log_bytes: bytes of a value in a row image, without fraction; 0 if they vary.
        result_type: its type code in the result of a query; 0 if it is one of the types of strings.
        result_bytes: bytes of a value in a binary result row; 0 if they vary.
    """

    name: str
    declared: tuple[str, ...]
    encoding: Encoding
    form: Form
    spark: Callable[[Column], str]
    key_bound: KeyBound
    server_text: str
    warehouse_text: Callable[[Column], str]
    comparison: Comparison = Comparison.TEXT
    log_type: int = 0
    log_metadata: int = 0
    log_bytes: int = 0
    result_type: int = 0
    result_bytes: int = 0
