"""Tables and their columns, as the log and the server describe them."""

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
from loader.model.ranges import explain_invalid_schema

ADDRESS_BYTES = {"uuid": 16, "inet4": 4, "inet6": 16}
"""MariaDB types that its log has as BINARY, by their bytes."""
_BYTES_OF = {**{name: f"binary({size})" for name, size in ADDRESS_BYTES.items()}, "vector": "varbinary"}
GROWING_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
"""In ascending order of capacity."""
TEXTS = frozenset({"char", "varchar", *GROWING_TEXTS})
"""Text types. ENUM and SET also have a character set."""


_SHOWN = 200  # characters of a value in an error
_QUOTED = re.compile(r"`(?P<schema>(?:[^`]|``)+)`\.(?P<table>.*)", re.DOTALL)


@dataclass(frozen=True, order=True)
class TableName:
    """The name of a source table, with its schema (database).

    Its text is `schema.table`. A schema with a dot in its name is quoted with backticks (doubled inside), so that each
    text names exactly one table.
    """

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse the text of a table; without backticks the first dot separates schema and table."""
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
        """The text, quoted for a shell."""
        return shlex.quote(str(self))

    @property
    def load_again(self) -> str:
        """The command that loads the table again."""
        return f"loader initial-load --table {self.argument} --again"

    @property
    def exclusion(self) -> str:
        """The change of the configuration that excludes the table."""
        return f"add {str(self)!r} to tables.exclude of the source"


@dataclass(frozen=True)
class Column:
    """A column, with everything that determines its staged text, and nothing else.

    Attributes:
        type: the server's type name (`int`, `varchar`, `datetime`, ...), without parameters.
        unsigned: whether a number is unsigned.
        size: precision of DECIMAL, fractional digits of a temporal type, bits of BIT, bytes of BINARY; else 0.
        scale: scale of DECIMAL; else 0.
        charset: character set of text, ENUM and SET (`utf8mb4`, `latin1`, ...); empty for other types.
        labels: labels of ENUM and SET, in order.
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
    """Return the type that MariaDB's log has for a column, if several types share it; otherwise an empty text."""
    declared = str(column)
    return _BYTES_OF.get(column.type) or (declared if declared in _BYTES_OF.values() else "")


SEQUENCE = (
    "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option",
    "cycle_count",
)  # fmt: skip
"""The columns of a MariaDB sequence, which its log has as a table (sql/sql_sequence.cc)."""


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table in order, and the columns of its primary key in key order (empty: no key)."""

    name: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @cached_property
    def schema_id(self) -> str:
        """16 hex digits. Two schemas have the same id only if they stage rows in the same way."""
        text = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def column(self, name: str) -> Column:
        """Return the column of that name.

        Raises:
            KeyError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the schema as data for JSON; `from_dict` parses it."""
        return {
            "schema": self.name.schema,
            "table": self.name.table,
            "columns": [{**asdict(column), "labels": list(column.labels)} for column in self.columns],
            "key": list(self.key),
        }

    @classmethod
    def from_dict(cls, data: object) -> TableSchema:
        """Parse the result of `as_dict`, from a document that may contain anything.

        Raises:
            StagedDataError: a field is missing, unknown, of another type or out of range.
        """
        try:
            found = _read_schema(data)
            why = explain_invalid_schema(found)
        except (TypeError, ValueError) as error:
            why = str(error)
        if why:
            raise StagedDataError(
                "the schema of a table in a document is invalid",
                why=why,
                hint="restore the version of the object that the loader wrote; find out who else writes to the store",
            )
        return found


_COLUMN_FIELDS = {"name": str, "type": str, "unsigned": bool, "size": int, "scale": int, "charset": str}


def _read_schema(data: object) -> TableSchema:
    """Parse a schema. Raises TypeError or ValueError for fields of other types than `as_dict` writes."""
    fields = _fields(data, {"schema": str, "table": str, "columns": list, "key": list})
    columns = tuple(map(_read_column, fields["columns"]))
    return TableSchema(TableName(fields["schema"], fields["table"]), columns, _texts(fields["key"], "key"))


def _read_column(data: object) -> Column:
    fields = _fields(data, {**_COLUMN_FIELDS, "labels": list})
    return Column(**{**fields, "labels": _texts(fields["labels"], "labels")})


def _fields(data: object, kinds: Mapping[str, type]) -> dict[str, Any]:
    """Check that an object has exactly these fields, of exactly these types; return it."""
    if type(data) is not dict or set(data) != set(kinds):
        raise ValueError(f"{_shown(data)} is not an object with the fields {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(data[name]) is not kind:
            raise TypeError(f"{name} is {_shown(data[name])} and not of type {kind.__name__}")
    return data


def _texts(data: list[object], name: str) -> tuple[str, ...]:
    found = tuple(one for one in data if isinstance(one, str))
    if len(found) < len(data):
        raise TypeError(f"{name} has an element that is not text: {_shown(data)}")
    return found


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


@dataclass(frozen=True)
class SchemaVersion:
    """The schema of a table from a transaction on.

    Attributes:
        since: seqno of the first transaction with this schema.
        at: position of that seqno.
        schema: None if it is not known.
        why: why it is not known.
    """

    since: int
    at: str
    schema: TableSchema | None
    why: str = ""


@dataclass(frozen=True)
class Versions:
    """Successive schemas by table. `others`: those of all other tables."""

    tables: Mapping[TableName, Sequence[SchemaVersion]]
    others: Sequence[SchemaVersion] = ()

    def of(self, name: TableName) -> Sequence[SchemaVersion]:
        """Return the schemas of a table whose column names are not in the log."""
        return self.tables.get(name, self.others)

    def named(self, name: TableName) -> Sequence[SchemaVersion]:
        """Return the schemas of a table whose column names are in the log; none for other tables."""
        return self.tables.get(name, ())

    def with_tables(self, more: Versions) -> Versions:
        """Return these schemas and those of more tables."""
        return Versions({**self.tables, **more.tables}, self.others)


NO_VERSIONS = Versions({})
