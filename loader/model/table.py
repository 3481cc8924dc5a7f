"""Tables and their columns as the log and the server both describe them."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from loader.errors import StagedDataError
from loader.model.ranges import fault_of

ADDRESS_BYTES = {"uuid": 16, "inet4": 4, "inet6": 16}
"""Types of MariaDB that its log does not tell from BINARY of so many bytes."""
_BYTES_OF = {**{name: f"binary({size})" for name, size in ADDRESS_BYTES.items()}, "vector": "varbinary"}
GROWING_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
"""Each holds more than the one before it."""
TEXTS = frozenset({"char", "varchar", *GROWING_TEXTS})
"""Types of text; ENUM and SET have a character set too."""


_SHOWN = 200  # characters of a value in an error
_QUOTED = re.compile(r"`(?P<schema>(?:[^`]|``)+)`\.(?P<table>.*)", re.DOTALL)


@dataclass(frozen=True, order=True)
class TableName:
    """A table of the source, with its schema (database).

    Its text is `schema.table`. A schema with a point in its name is written between backticks, with those inside it
    doubled, so that every text stands for one table.
    """

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read the text of a table; without backticks the first point divides."""
        if quoted := _QUOTED.fullmatch(text):
            return cls(quoted["schema"].replace("``", "`"), quoted["table"])
        schema, _, table = text.partition(".")
        return cls(schema, table)

    def __str__(self) -> str:
        schema = self.schema
        if "." in schema or schema.startswith("`"):
            schema = "`" + schema.replace("`", "``") + "`"
        return f"{schema}.{self.table}"

    @property
    def argument(self) -> str:
        """The text as an argument in a shell."""
        return shlex.quote(str(self))

    @property
    def load_again(self) -> str:
        """The command that loads the table anew."""
        return f"loader initial-load --table {self.argument} --again"


@dataclass(frozen=True)
class Column:
    """One column, with all that shapes its staged text and nothing else.

    Attributes:
        type: the server's type name (`int`, `varchar`, `datetime`, ...), without parameters.
        unsigned: for numbers.
        size: DECIMAL precision, fractional digits of a temporal type, bits of BIT, bytes of BINARY; else 0.
        scale: DECIMAL scale; else 0.
        charset: of text, ENUM and SET (`utf8mb4`, `latin1`, ...); empty for everything else.
        labels: of ENUM and SET, in their order.
    """

    name: str
    type: str
    unsigned: bool = False
    size: int = 0
    scale: int = 0
    charset: str = ""
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        sized = {
            "decimal": f"({self.size},{self.scale})",
            "bit": f"({self.size})",
            "binary": f"({self.size})",
        }
        text = self.type + sized.get(self.type, f"({self.size})" if self.size else "")
        if self.labels:
            text += "(" + ",".join(f"'{label}'" for label in self.labels) + ")"
        return text + (" unsigned" if self.unsigned else "")


def logged_as(column: Column) -> str:
    """The type that the log of MariaDB has a column as, if it does not tell it from others; else nothing."""
    declared = str(column)
    return _BYTES_OF.get(column.type) or (declared if declared in _BYTES_OF.values() else "")


SEQUENCE = (
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option",
    "cycle_count",
)  # fmt: skip
"""The columns of a sequence of MariaDB, which its log has as a table (sql/sql_sequence.cc)."""


@dataclass(frozen=True)
class TableSchema:
    """Columns in their order, and the names of the primary key's columns in key order (empty: no key)."""

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @cached_property
    def schema_id(self) -> str:
        """16 hex digits that two schemas share only when they stage the same way."""
        text = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def column(self, name: str) -> Column:
        """The column of that name; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; `from_dict` reads it back."""
        return {
            "schema": self.name.schema,
            "table": self.name.table,
            "columns": [{**asdict(column), "labels": list(column.labels)} for column in self.columns],
            "key": list(self.key),
        }

    @classmethod
    def from_dict(cls, data: object) -> TableSchema:
        """Read what `as_dict` wrote; a document in the store may hold anything else.

        Raises:
            StagedDataError: a field is missing, unknown, of another type or beyond its range.
        """
        try:
            found = _read_schema(data)
            why = fault_of(found)
        except (TypeError, ValueError) as error:
            why = str(error)
        if why:
            raise StagedDataError(
                "the schema of a table in a document is not one that the loader writes",
                why=why,
                hint="restore the object from a version that the loader wrote, and see who else can write to the store",
            )
        return found


_COLUMN_FIELDS = {"name": str, "type": str, "unsigned": bool, "size": int, "scale": int, "charset": str}


def _read_schema(data: object) -> TableSchema:
    """Raises TypeError or ValueError for other types of fields than `as_dict` writes."""
    fields = _fields(data, {"schema": str, "table": str, "columns": list, "key": list})
    columns = tuple(map(_read_column, fields["columns"]))
    return TableSchema(TableName(fields["schema"], fields["table"]), columns, _texts(fields["key"], "key"))


def _read_column(data: object) -> Column:
    fields = _fields(data, {**_COLUMN_FIELDS, "labels": list})
    return Column(**{**fields, "labels": _texts(fields["labels"], "labels")})


def _fields(data: object, kinds: Mapping[str, type]) -> dict[str, Any]:
    """An object with exactly these fields, of exactly these types."""
    if type(data) is not dict or set(data) != set(kinds):
        raise ValueError(f"{_shown(data)} is not an object with the fields {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(data[name]) is not kind:
            raise TypeError(f"{name} is {_shown(data[name])} and not of type {kind.__name__}")
    return data


def _texts(data: list[object], name: str) -> tuple[str, ...]:
    found = tuple(one for one in data if isinstance(one, str))
    if len(found) < len(data):
        raise TypeError(f"{name} has an element that is no text: {_shown(data)}")
    return found


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@dataclass(frozen=True)
class SchemaVersion:
    """The schema that a table has in the transactions from the seqno `since` on, which is that of the position `at`.

    None: what it is then is not known, and `why`.
    """

    since: int
    at: str
    schema: TableSchema | None
    why: str = ""


@dataclass(frozen=True)
class Versions:
    """The schemas that tables have one after the other; `others`: those of tables that are not among them."""

    tables: Mapping[TableName, Sequence[SchemaVersion]]
    others: Sequence[SchemaVersion] = ()

    def of(self, name: TableName) -> Sequence[SchemaVersion]:
        """Those of a table without names of columns."""
        return self.tables.get(name, self.others)

    def named(self, name: TableName) -> Sequence[SchemaVersion]:
        """Those of a table with names; none if it is not among the tables."""
        return self.tables.get(name, ())


NOTHING_TOLD = Versions({})
