"""What a statement of the log does to tables, as a list of changes in their order.

Sources: MySQL manual, "ALTER TABLE Statement", "CREATE TABLE Statement"; MariaDB manual, "ALTER TABLE".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loader.model.table import TableName

VERSIONED = "a system-versioned table logs its history as rows"
"""Why such a table of MariaDB is not covered; loading it again does not help."""

FIRST = ""
"""The place of a column before all others; after another column it is that one's name, which is never empty."""


@dataclass(frozen=True)
class Default:
    """What DEFAULT says.

    Attributes:
        kind: a literal that is a `string`, a `number` (with its sign), `hex` or `bits`; `null`; or an `expression`,
            which is all that must be computed.
        text: the literal without quotes and escapes; empty for NULL; of an expression its beginning, for a person.
    """

    kind: Literal["string", "number", "hex", "bits", "null", "expression"]
    text: str = ""


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as a statement defines it, its type by the name that the server gives it.

    Attributes:
        type, unsigned, size, scale, labels: as in `loader.model.table.Column`.
        length: characters of CHAR and VARCHAR, bytes of VARBINARY and BINARY; else 0.
        charset: as the statement says; empty when it says nothing, so that the table's own counts.
        rounded: FLOAT(M,D) or DOUBLE(M,D), whose values are rounded.
        nullable: None when the statement says nothing, which means NULL for all but some TIMESTAMPs.
        default: None when the statement says nothing.
    """

    name: str
    type: str
    unsigned: bool = False
    size: int = 0
    scale: int = 0
    labels: tuple[str, ...] = ()
    length: int = 0
    charset: str = ""
    rounded: bool = False
    nullable: bool | None = None
    default: Default | None = None
    generated: bool = False
    auto_increment: bool = False


@dataclass(frozen=True)
class AddColumn:
    """`place`: FIRST, the name of the column before it, or None for the end."""

    definition: ColumnDefinition
    place: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    """RENAME COLUMN."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True)
class ModifyColumn:
    """MODIFY and CHANGE; `place`: as of AddColumn, None where it is."""

    old: str
    definition: ColumnDefinition
    place: str | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class SetKey:
    """A primary key is added."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class DropKey:
    """The primary key is dropped."""


@dataclass(frozen=True)
class ChangeIndexes:
    """A unique key comes or goes: one of columns without NULL is the key of a table without primary key."""


@dataclass(frozen=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET; an empty name is the schema's default."""

    charset: str


@dataclass(frozen=True)
class Reload:
    """Rows vanish or change by it, and the log does not have them."""

    reason: str


Action = (
    AddColumn | DropColumn | RenameColumn | ModifyColumn | SetKey | DropKey | ChangeIndexes | ConvertCharset | Reload
)


@dataclass(frozen=True)
class Created:
    """A table is made.

    Attributes:
        like: the table whose definition it takes.
        replaces: a table of that name is dropped before.
        defines: its columns and keys, as if they were added to a table without any; None where the statement does not
            tell them all, or they could not be read.
        charset: of its columns that have none of their own; empty for that of the database.
    """

    table: TableName
    if_not_exists: bool = False
    like: TableName | None = None
    replaces: bool = False
    defines: tuple[Action, ...] | None = None
    charset: str = ""


@dataclass(frozen=True)
class Dropped:
    """A table is dropped, if it is there."""

    table: TableName


@dataclass(frozen=True)
class SchemaDropped:
    """All tables of a database are dropped."""

    schema: str


@dataclass(frozen=True)
class SchemaDefined:
    """A database is made or altered.

    Attributes:
        charset: of tables that are made in it; empty where the statement does not say.
        made: it is made, with the server's own where the statement does not say.
        if_not_exists: nothing happens where it is there.
    """

    schema: str
    charset: str
    made: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Truncated:
    """A table loses its rows."""

    table: TableName


@dataclass(frozen=True)
class Renamed:
    """A table takes another name."""

    old: TableName
    new: TableName


@dataclass(frozen=True)
class Altered:
    """A table's definition changes, by all actions at once; none of them: in nothing that matters to its rows.

    `charset`: of columns that get none of their own from now on; empty where it stays.
    """

    table: TableName
    actions: tuple[Action, ...]
    charset: str = ""


@dataclass(frozen=True)
class Unreadable:
    """The statement could not be read; None: so that any table can be meant."""

    table: TableName | None
    why: str


def recovery_hint(table: TableName, why: str) -> str:
    """What to do about a table that cannot go on for that reason."""
    reload = table.load_again
    if why != VERSIONED:
        return reload
    plain = f"ALTER TABLE {table} DROP SYSTEM VERSIONING on the server and then {reload}"
    return f"exclude the table (tables.exclude of the source), or {plain}"


TableChange = Created | Dropped | SchemaDropped | SchemaDefined | Truncated | Renamed | Altered | Unreadable
