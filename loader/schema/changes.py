"""The changes that a DDL statement of the log makes to tables and databases.

Sources: MySQL manual, "ALTER TABLE Statement", "CREATE TABLE Statement"; MariaDB manual, "ALTER TABLE".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loader.model.engines import NO_ROWS
from loader.model.table import TableName

VERSIONED = "a system-versioned table logs its history as rows"
"""Why MariaDB's system-versioned tables are not supported. Loading the table again does not help."""

CASCADES = "its foreign keys CASCADE or SET NULL, and the server does not log the rows that they change"
"""Why such tables are not supported on servers that do not log these changes. Loading again does not help."""

UNSUPPORTED = (VERSIONED, CASCADES, NO_ROWS)
"""Why a table is not supported, so that loading it again does not help."""

FIRST = ""
"""`place` of a column that comes first. For AFTER it is the name of the column before, which is never empty."""


@dataclass(frozen=True)
class Default:
    """The value of a DEFAULT clause.

    Attributes:
        kind: `string`, `number` (with its sign), `hex` or `bits` for a literal; `null`; or `expression` for everything
            that the server computes.
        text: the literal without quotes and escapes; empty for NULL; the start of an expression, for error texts.
    """

    kind: Literal["string", "number", "hex", "bits", "null", "expression"]
    text: str = ""


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as a statement defines it, with the server's name of its type.

    Attributes:
        type, unsigned, size, scale, labels: as in `loader.model.table.Column`.
        length: characters of CHAR and VARCHAR, bytes of VARBINARY and BINARY; else 0.
        charset: of the statement; empty if it names none: then the table's default applies.
        positive: UNSIGNED or ZEROFILL of a type whose `Column` does not tell it, such as DECIMAL.
        rounded: FLOAT(M,D) or DOUBLE(M,D): the server rounds its values.
        nullable: None if the statement does not say: then it is nullable, except some TIMESTAMPs.
        default: None if the statement has no DEFAULT.
        generated: its values are computed from other columns.
        auto_increment: AUTO_INCREMENT.
    """

    name: str
    type: str
    unsigned: bool = False
    size: int = 0
    scale: int = 0
    labels: tuple[str, ...] = ()
    length: int = 0
    charset: str = ""
    positive: bool = False
    rounded: bool = False
    nullable: bool | None = None
    default: Default | None = None
    generated: bool = False
    auto_increment: bool = False


@dataclass(frozen=True)
class AddColumn:
    """ADD COLUMN. `place`: FIRST, the name of the column before it, or None for the end."""

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
    """MODIFY and CHANGE COLUMN. `place`: see AddColumn; None if the column stays where it is."""

    old: str
    definition: ColumnDefinition
    place: str | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class SetKey:
    """ADD PRIMARY KEY. `if_not_exists`: nothing happens if there is a primary key."""

    columns: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropKey:
    """DROP PRIMARY KEY."""


@dataclass(frozen=True)
class ChangeIndexes:
    """A unique key is added or dropped. In a table without primary key, a unique key without NULLs is the key."""


@dataclass(frozen=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET. An empty name means the default of the database."""

    charset: str


@dataclass(frozen=True)
class Reload:
    """An action that removes, adds or changes rows without logging them: the table must be loaded again.

    Attributes:
        reason: what did it.
        adds_rows: a table without rows may have rows afterwards.
    """

    reason: str
    adds_rows: bool = False


REPAIRED = Reload("REPAIR deletes damaged rows of MyISAM and Aria tables")
"""REPAIR TABLE and REPAIR PARTITION. The log does not tell whether rows were damaged, nor the engine of the table."""

Action = (
    AddColumn | DropColumn | RenameColumn | ModifyColumn | SetKey | DropKey | ChangeIndexes | ConvertCharset | Reload
)


@dataclass(frozen=True)
class Created:
    """A table is created.

    Attributes:
        table: its name.
        if_not_exists: nothing happens if the table exists.
        like: the table whose definition it copies.
        replaces: an existing table of that name is dropped first.
        defines: its columns and keys, as actions on an empty table; None if the statement does not have them all, or
            they cannot be parsed.
        charset: default of its columns; empty for that of the database.
    """

    table: TableName
    if_not_exists: bool = False
    like: TableName | None = None
    replaces: bool = False
    defines: tuple[Action, ...] | None = None
    charset: str = ""


@dataclass(frozen=True)
class Dropped:
    """A table is dropped, if it exists."""

    table: TableName


@dataclass(frozen=True)
class SchemaDropped:
    """All tables of a database are dropped."""

    schema: str


@dataclass(frozen=True)
class SchemaDefined:
    """A database is created or altered.

    Attributes:
        schema: its name.
        charset: default of tables created in it; empty if the statement does not say.
        made: it is created; its default is then the server's if the statement does not say.
        if_not_exists: nothing happens if it exists.
    """

    schema: str
    charset: str
    made: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Truncated:
    """A table loses all rows (TRUNCATE)."""

    table: TableName


@dataclass(frozen=True)
class Renamed:
    """A table is renamed. `if_exists`: nothing happens if there is no such table. MariaDB logs that too."""

    old: TableName
    new: TableName
    if_exists: bool = False


@dataclass(frozen=True)
class Altered:
    """A table is altered.

    Attributes:
        table: its name.
        actions: they take effect together; empty if nothing changes that matters to rows.
        charset: the new default character set of columns; empty if it stays.
    """

    table: TableName
    actions: tuple[Action, ...]
    charset: str = ""


@dataclass(frozen=True)
class Shadowed:
    """A temporary table gets a name. Until its session ends, statements with that name may mean this table.

    Only sessions that do not log in ROW format log it.
    """

    table: TableName


@dataclass(frozen=True)
class Unreadable:
    """A statement cannot be parsed. `table`: the table that it changes; None if it may be any table."""

    table: TableName | None
    why: str


def recovery_hint(table: TableName, why: str) -> str:
    """Return the hint for a table that cannot be merged further for the reason `why`."""
    first = {
        VERSIONED: f"ALTER TABLE {table} DROP SYSTEM VERSIONING on the server",
        CASCADES: "make the foreign keys RESTRICT on the server",
        NO_ROWS: f"ALTER TABLE {table} ENGINE = InnoDB on the server",
    }.get(why)
    reload = table.load_again
    return f"{table.exclusion}, or {first} and then {reload}" if first else reload


TableChange = Created | Dropped | SchemaDropped | SchemaDefined | Truncated | Renamed | Altered | Shadowed | Unreadable
