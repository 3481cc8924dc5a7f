"""Parses the actions of ALTER TABLE, and the columns and keys of CREATE TABLE.

Sources: MySQL manual, "ALTER TABLE Statement", "ALTER TABLE Partition Operations"; MariaDB manual, "ALTER TABLE".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from loader.model.engines import FOREIGN_ENGINES, NO_ROWS
from loader.model.table import TableName
from loader.schema.changes import (
    FIRST,
    REPAIRED,
    VERSIONED,
    Action,
    AddColumn,
    Altered,
    ChangeIndexes,
    ConvertCharset,
    DropColumn,
    DropKey,
    Dropped,
    ModifyColumn,
    Reload,
    RenameColumn,
    Renamed,
    SetKey,
    TableChange,
)
from loader.schema.cursor import TokenCursor
from loader.schema.definition import PRIMARY, UNIQUE, default_charset, read_definition
from loader.schema.lexer import Token

_INDEXES = {"INDEX", "KEY", "FULLTEXT", "SPATIAL"}
_ENGINES = {"INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP", "ARCHIVE", "ROCKSDB", "TOKUDB"}
"""Engines that keep all rows as they are."""
_WITHOUT_EFFECT = {
    "FORCE", "ALGORITHM", "LOCK", "ENABLE", "DISABLE", "WITH", "WITHOUT", "UPGRADE", "SECONDARY_LOAD",
    "SECONDARY_UNLOAD",
}  # fmt: skip
_PARTITIONS_KEPT = {("PARTITION", "BY"), ("REMOVE", "PARTITIONING")} | {
    (word, "PARTITION") for word in ("COALESCE", "REBUILD", "OPTIMIZE", "ANALYZE", "CHECK")
}
_OPTIONS = {
    "ENGINE", "TYPE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHARACTER", "CHARSET", "CHECKSUM", "COLLATE", "COMMENT",
    "COMPRESSION", "CONNECTION", "DATA", "DEFAULT", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "INDEX",
    "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PASSWORD", "ROW_FORMAT",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLESPACE", "UNION", "STORAGE", "AUTOEXTEND_SIZE", "START",
    "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "TABLE_CHECKSUM", "TRANSACTIONAL",
}  # fmt: skip
_ENDS_ORDER = {"ADD", "ALTER", "CHANGE", "DROP", "RENAME", "CONVERT", "ORDER", "FORCE", "LOCK"}


@dataclass
class AlterReader:
    """Parses what follows `ALTER TABLE name`.

    Attributes:
        cursor: at the first action.
        database: default database of the statement.
        sql_mode: bits of the sql_mode it ran with.
        mariadb: a MariaDB server ran it.
        table: the table that it names.
        others: output: what it does to other tables.
        charset: output: the new default character set of columns; empty if it stays.
    """

    cursor: TokenCursor
    database: str
    sql_mode: int
    mariadb: bool
    table: TableName
    others: list[TableChange] = field(default_factory=list)
    charset: str = ""
    _defaults: set[str] = field(default_factory=set)  # columns of ALTER COLUMN, in lower case

    def read(self) -> tuple[Action, ...]:
        """Return all actions, in order.

        Raises:
            UnreadableError: an action is unknown.
        """
        found: list[Action] = []
        cursor = self.cursor
        while not cursor.done():
            found += self._action()
            if cursor.sees("PARTITION", "BY") or cursor.sees("REMOVE", "PARTITIONING"):
                break
            if not cursor.done():
                cursor.need(",")
        added = {action.definition.name.lower() for action in found if isinstance(action, AddColumn)}
        found += (Reload(f"the default of the new column {name} changes") for name in sorted(added & self._defaults))
        return tuple(found)

    def _action(self) -> Iterator[Action]:
        cursor = self.cursor
        word = cursor.next.word
        if cursor.take("ADD"):
            yield from self._add()
        elif cursor.take("DROP"):
            yield from self._drop()
        elif cursor.take_any("CHANGE", "MODIFY"):
            yield from self._modify(word)
        elif cursor.take("RENAME"):
            yield from self._rename()
        elif cursor.take("CONVERT"):
            yield from self._convert()
        elif cursor.take("ORDER", "BY"):
            self._order()
        elif word in {"DISCARD", "IMPORT"}:
            cursor.skip_item()
            yield Reload(f"{word} TABLESPACE", adds_rows=word == "IMPORT")
            self._rest()
        elif word in {"TRUNCATE", "EXCHANGE"}:
            yield from self._partition_moved(word)
        elif cursor.sees("REORGANIZE", "PARTITION"):
            # Both servers delete rows that are in no new list, without an error. New ranges must keep the old range.
            if ("VALUES", "IN") in pairwise(token.word for token in self._rest()):
                yield Reload("REORGANIZE PARTITION deletes rows whose values are in no new list")
        elif cursor.sees("REPAIR", "PARTITION"):
            self._rest()
            yield REPAIRED
        elif (word, cursor.ahead(1).word) in _PARTITIONS_KEPT:
            self._rest()
        elif cursor.take("ALTER"):
            self._alter()
        elif word in _WITHOUT_EFFECT:
            cursor.skip_item()
        else:
            yield from self._options()

    def _add(self) -> Iterator[Action]:
        cursor = self.cursor
        if cursor.take("PARTITION"):
            self._rest()
        elif cursor.sees("SYSTEM", "VERSIONING") or cursor.sees("PERIOD", "FOR", "SYSTEM_TIME"):
            cursor.skip_item()
            yield Reload(VERSIONED)
        elif cursor.sees("PERIOD", "FOR"):  # of application time
            cursor.skip_item()
            yield Reload("ADD PERIOD makes its columns NOT NULL")
        elif (key := self._key()) is not None:
            yield from key
        else:
            cursor.take("COLUMN")
            missing = cursor.take("IF", "NOT", "EXISTS")
            yield from self.elements(missing=missing) if cursor.take("(") else self._column(missing)

    def elements(self, *, missing: bool = False) -> Iterator[Action]:
        """Yield the columns and keys of a list whose parenthesis is open.

        `missing`: add only columns that do not exist yet (IF NOT EXISTS).

        Raises:
            UnreadableError: a definition cannot be parsed.
        """
        while True:
            key = self._key()
            yield from self._column(missing) if key is None else key
            if not self.cursor.take(","):
                break
        self.cursor.need(")")

    def _column(self, missing: bool) -> Iterator[Action]:
        definition, key = read_definition(self.cursor, self.sql_mode, self.mariadb)
        yield AddColumn(definition, self._place(), missing)
        yield from _key_actions(definition.name, key, missing=missing)

    def _key(self) -> list[Action] | None:
        """Parse a key or constraint and return its effect; None if none comes next."""
        cursor = self.cursor
        start = cursor.at
        named, missing = cursor.take("CONSTRAINT"), False
        if named and cursor.next.word not in {"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"}:
            missing = cursor.take("IF", "NOT", "EXISTS")
            cursor.name()
        if cursor.take("PRIMARY", "KEY"):
            missing = cursor.take("IF", "NOT", "EXISTS") or missing
            while not cursor.sees("("):
                cursor.name()
            columns = cursor.names()
            self._skip_element()
            return [SetKey(columns, missing)]
        if cursor.sees("UNIQUE"):
            self._skip_element()
            return [ChangeIndexes()]
        vector = cursor.next.word == "VECTOR" and cursor.ahead(1).word in {"INDEX", "KEY", "("}
        if named or vector or cursor.next.word in {*_INDEXES, "FOREIGN", "CHECK"}:
            self._skip_element()
            return []
        cursor.at = start
        return None

    def _skip_element(self) -> None:
        """Skip the rest of a key, inside or outside a list in parentheses."""
        cursor = self.cursor
        while not (cursor.done() or cursor.next.word in {",", ")"} or cursor.sees("PARTITION", "BY")):
            if cursor.sees("("):
                cursor.group()
            else:
                cursor.at += 1

    def _drop(self) -> Iterator[Action]:
        cursor = self.cursor
        if cursor.take("PRIMARY", "KEY"):
            yield DropKey()
        elif cursor.take("PARTITION"):
            self._rest()
            yield Reload("DROP PARTITION")
        elif cursor.sees("SYSTEM", "VERSIONING") or cursor.sees("PERIOD", "FOR", "SYSTEM_TIME"):
            cursor.skip_item()
            yield Reload("DROP SYSTEM VERSIONING removes the history rows")
        elif cursor.sees("PERIOD", "FOR"):  # of application time
            cursor.skip_item()
        elif cursor.take_any("INDEX", "KEY", "CONSTRAINT"):
            cursor.take("IF", "EXISTS")
            yield DropKey() if cursor.name().upper() == "PRIMARY" else ChangeIndexes()
        elif cursor.take("FOREIGN", "KEY") or cursor.take("CHECK"):
            cursor.skip_item()
        else:
            cursor.take("COLUMN")
            exists = cursor.take("IF", "EXISTS")
            yield DropColumn(cursor.name(), exists)
            cursor.take_any("RESTRICT", "CASCADE")

    def _modify(self, word: str) -> Iterator[Action]:
        cursor = self.cursor
        cursor.take("COLUMN")
        exists = cursor.take("IF", "EXISTS")
        old = cursor.name() if word == "CHANGE" else ""
        definition, key = read_definition(cursor, self.sql_mode, self.mariadb)
        yield ModifyColumn(old or definition.name, definition, self._place(), exists)
        yield from _key_actions(definition.name, key)

    def _place(self) -> str | None:
        if self.cursor.take("FIRST"):
            return FIRST
        return self.cursor.name() if self.cursor.take("AFTER") else None

    def _rename(self) -> Iterator[Action]:
        cursor = self.cursor
        if cursor.take("COLUMN"):
            exists = cursor.take("IF", "EXISTS")
            old = cursor.name()
            cursor.need("TO")
            yield RenameColumn(old, cursor.name(), exists)
        elif cursor.take_any("INDEX", "KEY"):
            cursor.skip_item()
        else:
            cursor.take_any("TO", "AS", "=")
            self.others.append(Renamed(self.table, cursor.table(self.database)))

    def _alter(self) -> None:
        """Skip ALTER of a default or a visibility. It changes no rows, unless the statement adds the column."""
        cursor = self.cursor
        if cursor.next.word not in {"INDEX", "KEY", "CHECK", "CONSTRAINT"}:
            cursor.take("COLUMN")
            cursor.take("IF", "EXISTS")
            self._defaults.add(cursor.name().lower())
        cursor.skip_item()

    def _convert(self) -> Iterator[Action]:
        cursor = self.cursor
        if cursor.take("TO"):
            if not (cursor.take("CHARACTER", "SET") or cursor.take("CHAR", "SET")):
                cursor.need("CHARSET")
            cursor.take("=")
            charset = cursor.pop("word", "name", "string").lower()
            cursor.skip_item()
            yield ConvertCharset({"utf8": "utf8mb3", "default": ""}.get(charset, charset))
        elif cursor.take("TABLE"):
            self.others.append(Dropped(cursor.table(self.database)))
            self._rest()
            yield Reload("CONVERT TABLE adds rows", adds_rows=True)
        else:
            yield from self._partition_moved("CONVERT")

    def _partition_moved(self, word: str) -> Iterator[Action]:
        """Parse an action that moves a partition to another table, or removes its rows."""
        rest = self._rest()
        at = next((i for i, token in enumerate(rest) if token.word == "TABLE"), None)
        if at is not None:
            partner = TokenCursor(rest[at + 1 :], folds=self.cursor.folds).table(self.database)
            self.others.append(Altered(partner, (Reload(f"{word} PARTITION adds rows", adds_rows=True),)))
        yield Reload(f"{word} PARTITION", adds_rows=word == "EXCHANGE")

    def _order(self) -> None:
        """Skip ORDER BY, whose list has commas too."""
        cursor = self.cursor
        while True:
            cursor.name()
            while cursor.take("."):
                cursor.name()
            cursor.take_any("ASC", "DESC")
            if not cursor.sees(",") or cursor.ahead(1).word in _ENDS_ORDER:
                return
            cursor.take(",")

    def _options(self) -> Iterator[Action]:
        """Parse table options. A new engine that is not in _ENGINES may not keep the rows."""
        cursor = self.cursor
        if cursor.next.word not in _OPTIONS and cursor.ahead(1).word != "=":
            raise cursor.unexpected("an action of ALTER TABLE")
        item = cursor.skip_item()
        self.charset = default_charset(item) or self.charset
        for at, token in enumerate(item):
            if token.word == "ENGINE":
                value = next((t.text for t in item[at + 1 :] if t.word != "="), "")
                if value.upper() not in _ENGINES:
                    yield Reload(NO_ROWS if value.upper() in FOREIGN_ENGINES else f"ENGINE = {value}")

    def _rest(self) -> list[Token]:
        found = self.cursor.rest()
        self.cursor.at += len(found)
        return found


def _key_actions(name: str, key: str, *, missing: bool = False) -> list[Action]:
    """Return the actions of a column definition with PRIMARY KEY or UNIQUE.

    `missing`: ADD COLUMN IF NOT EXISTS. If the column exists, MariaDB makes it the primary key of a table without one.
    """
    if key == PRIMARY:
        return [SetKey((name,), missing)]
    return [ChangeIndexes()] if key == UNIQUE else []
