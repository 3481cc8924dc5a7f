"""Columns of a table, as information_schema describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
BINARIES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


@dataclass(frozen=True)
class Column:
    """One column of a table on the server."""

    name: str
    type: str
    """The name of the type alone, such as `varchar`."""
    declared: str
    """The whole type, such as `varchar(20)`."""
    nullable: bool
    charset: str | None
    generated: bool
    length: int

    @property
    def quoted(self) -> str:
        return quoted(self.name)

    @property
    def size(self) -> int:
        """The number in brackets behind the type, 0 without one."""
        found = re.search(r"\((\d+)", self.declared)
        return int(found[1]) if found else 0

    @property
    def labels(self) -> list[str]:
        """The labels of an ENUM or SET."""
        return [one.replace("''", "'") for one in re.findall(r"'((?:[^']|'')*)'", self.declared)]


def quoted(name: str) -> str:
    """A name as an identifier."""
    return "`" + name.replace("`", "``") + "`"
