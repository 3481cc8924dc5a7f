"""A server in a few lines: statements change tables in plain dictionaries, and a log tells of them.

Shares nothing with the loader, so that it can contradict it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

NAMES = ("a", "b", "c", "d", "e")
SPARE = ("v", "_loader_x", "_file", "__FILE")


@dataclass(frozen=True)
class PlainColumn:
    """A column of whole numbers; `default`: of rows that were there before it."""

    name: str
    type: str = "int"
    default: int | None = None


Row = dict[str, int | None]


@dataclass
class PlainTable:
    """Columns in order, the first one the key; rows by key."""

    columns: tuple[PlainColumn, ...]
    rows: dict[int, Row] = field(default_factory=dict)

    @property
    def spare(self) -> list[str]:
        """Names of columns that it could get."""
        return [name for name in SPARE if name not in {column.name for column in self.columns}]

    @property
    def values(self) -> list[str]:
        """Names of its columns but the key."""
        return [column.name for column in self.columns[1:]]


@dataclass(frozen=True)
class Record:
    """A row of the log: the row that came, the one after an update, or the one that went."""

    at: int
    place: int
    op: str
    table: str
    columns: tuple[PlainColumn, ...]
    row: tuple[int | None, ...]


@dataclass(frozen=True)
class Statement:
    """A statement of the log that is about tables."""

    at: int
    text: str
    tables: tuple[str, ...]


KEY = PlainColumn("id")


class PlainServer:
    """Tables, the log of what was done to them, and the tables as they were at each place of it.

    Attributes:
        told: the operation and the key of each record, by the name that the table had.
    """

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.at = 1000
        self.untold = 0
        self.tables: dict[str, PlainTable] = {}
        self.log: list[Record | Statement] = []
        self.states: dict[int, dict[str, PlainTable]] = {}
        self.renames = True
        self.told: dict[str, list[tuple[str, int]]] = {}
        self.stories: dict[int, dict[str, list[tuple[str, int]]]] = {}
        self.known: set[str] = set()
        self._keys = 0

    def step(self) -> None:
        """Do anything."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.insert, 8), (self.update, 6), (self.delete, 3), (self.change_key, 2), (self.create, 3),
            (self.create_like, 1), (self.create_select, 1), (self.drop, 2), (self.truncate, 1), (self.rename, 2 * self.renames),
            (self.swap, 2 * self.renames), (self.replace, 2 * self.renames), (self.add_column, 2), (self.drop_column, 1), (self.rename_column, 1),
            (self.swap_columns, 1), (self.make_column_anew, 1), (self.widen, 1), (self.alter_nothing, 1),
            (self.alter_untold, self.untold), (self.write_unlogged, self.untold // 2),
        ]  # fmt: skip
        (work,) = self.dice.choices([work for work, _ in kinds], [weight for _, weight in kinds])
        work()
        self.known |= self.tables.keys()
        self.keep_state()

    def keep_state(self) -> None:
        """Keep the tables, and what the log told of the rows of each name, as they are at this place."""
        self.states[self.at] = deepcopy(self.tables)
        self.stories[self.at] = deepcopy(self.told)

    # Rows

    def insert(self) -> None:
        if (name := self._any()) is not None:
            self._next()
            self._inserted(name, self.dice.randint(1, 3))

    def update(self) -> None:
        if (found := self._row()) is not None:
            name, key = found
            table = self.tables[name]
            self._next()
            if table.values:
                table.rows[key][self.dice.choice(table.values)] = self.dice.randint(0, 99)
            self._tell("U", name, key)

    def delete(self) -> None:
        if (found := self._row()) is not None:
            self._next()
            self._tell("D", *found)
            del self.tables[found[0]].rows[found[1]]

    def change_key(self) -> None:
        if (found := self._row()) is not None:
            name, key = found
            table = self.tables[name]
            self._next()
            self._tell("D", name, key)
            row = table.rows.pop(key)
            self._keys += 1
            table.rows[self._keys] = row | {"id": self._keys}
            self._tell("I", name, self._keys)

    # Whole tables

    def create(self) -> None:
        if (name := self._free()) is not None:
            count = self.dice.randint(0, 3)
            self.tables[name] = PlainTable((KEY, *(PlainColumn(one) for one in self.dice.sample(SPARE, count))))
            columns = ", ".join(f"{column.name} INT" for column in self.tables[name].columns)
            # Where nothing tells that the table was not there already, it has to be loaded.
            maybe = self.dice.choice(("", "IF NOT EXISTS ")) if name in self.known else ""
            self._say(f"CREATE TABLE {maybe}{name} ({columns}, PRIMARY KEY (id))", name)

    def create_like(self) -> None:
        name, other = self._free(), self._any()
        if name is not None and other is not None:
            self.tables[name] = PlainTable(self.tables[other].columns)
            self._say(f"CREATE TABLE {name} LIKE {other}", name)

    def create_select(self) -> None:
        if (name := self._free()) is not None:
            self.tables[name] = PlainTable((KEY, PlainColumn("v")))
            self._say(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)", name)
            self._inserted(name, self.dice.randint(1, 3))

    def drop(self) -> None:
        if (name := self._any()) is not None:
            del self.tables[name]
            self._say(f"DROP TABLE {name}", name)

    def truncate(self) -> None:
        if (name := self._any()) is not None:
            self.tables[name].rows.clear()
            self._say(f"TRUNCATE TABLE {name}", name)

    def rename(self) -> None:
        name, free = self._any(), self._free()
        if name is not None and free is not None:
            self.tables[free] = self.tables.pop(name)
            one = self.dice.choice((f"RENAME TABLE {name} TO {free}", f"ALTER TABLE {name} RENAME TO {free}"))
            self._say(one, name, free)

    def swap(self) -> None:
        count = self.dice.randint(2, 3)
        if len(self.tables) >= count:
            names = self.dice.sample(sorted(self.tables), count)
            taken = [self.tables[name] for name in names]
            self.tables |= dict(zip((*names[1:], names[0]), taken, strict=True))
            pairs = list(zip(names, (*names[1:], "swap_"), strict=True))
            renames = [f"{old} TO {new}" for old, new in reversed(pairs)] + [f"swap_ TO {names[0]}"]
            self._say(f"RENAME TABLE {', '.join(renames)}", *names, "swap_")

    def replace(self) -> None:
        """As a tool ends that rebuilds a table."""
        free = self._free()
        if free is not None and len(self.tables) >= 2:
            old, new = self.dice.sample(sorted(self.tables), 2)
            self.tables[free] = self.tables.pop(old)
            self.tables[old] = self.tables.pop(new)
            self._say(f"RENAME TABLE {old} TO {free}, {new} TO {old}", old, free, new)

    # Columns

    def add_column(self) -> None:
        if (name := self._any()) is not None and self.tables[name].spare:
            column = PlainColumn(
                self.dice.choice(self.tables[name].spare), default=self.dice.choice((None, 7, self.dice.randint(0, 9)))
            )
            place = self.dice.randint(1, len(self.tables[name].columns))
            self._insert_column(name, place, column)
            after = self.tables[name].columns[place - 1].name
            self._say(f"ALTER TABLE {name} ADD COLUMN {_told(column)} AFTER {after}", name)

    def drop_column(self) -> None:
        if (found := self._column()) is not None:
            name, column = found
            self._remove_column(name, column)
            self._say(f"ALTER TABLE {name} DROP COLUMN {column}", name)

    def make_column_anew(self) -> None:
        if (found := self._column()) is not None:
            name, column = found
            made = PlainColumn(column, default=self.dice.choice((None, 5)))
            self._remove_column(name, column)
            self._insert_column(name, len(self.tables[name].columns), made)
            self._say(f"ALTER TABLE {name} DROP COLUMN {column}, ADD COLUMN {_told(made)}", name)

    def rename_column(self) -> None:
        if (found := self._column()) is not None and self.tables[found[0]].spare:
            name, column = found
            new = self.dice.choice(self.tables[name].spare)
            self._rename_columns(name, {column: new})
            self._say(f"ALTER TABLE {name} RENAME COLUMN {column} TO {new}", name)

    def swap_columns(self) -> None:
        name = self._any()
        if name is not None and len(self.tables[name].values) >= 2:
            one, other = self.dice.sample(self.tables[name].values, 2)
            self._rename_columns(name, {one: other, other: one})
            self._say(f"ALTER TABLE {name} RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}", name)

    def widen(self) -> None:
        if (found := self._column()) is not None:
            name, column = found
            table = self.tables[name]
            table.columns = tuple(
                PlainColumn(one.name, "bigint") if one.name == column else one for one in table.columns
            )
            self._say(f"ALTER TABLE {name} MODIFY COLUMN {column} BIGINT", name)

    def alter_nothing(self) -> None:
        if (name := self._any()) is not None:
            self._say(f"ALTER TABLE {name} COMMENT 'again'", name)

    def alter_untold(self) -> None:
        """A statement of which the log does not tell what it did to rows."""
        if (name := self._any()) is not None and self.tables[name].spare:
            column = PlainColumn(self.dice.choice(self.tables[name].spare))
            self._insert_column(name, 1, column)
            for row in self.tables[name].rows.values():
                row[column.name] = self.dice.randint(0, 99)
            self._say(f"ALTER TABLE {name} ADD COLUMN {column.name} INT DEFAULT (RAND() * 100) AFTER id", name)

    def write_unlogged(self) -> None:
        """A statement that may have changed rows of any table."""
        name = self._any()
        if name is not None:
            for row in self.tables[name].rows.values():
                row.update(dict.fromkeys(self.tables[name].values, 100))
        self._say("UPDATE elsewhere SET n = 1")

    # Parts of them

    def _next(self) -> None:
        self.at += self.dice.randint(10, 60)

    def _say(self, text: str, *tables: str) -> None:
        self._next()
        self.log.append(Statement(self.at, text, tables))

    def _tell(self, op: str, name: str, key: int) -> None:
        table = self.tables[name]
        row = tuple(table.rows[key][column.name] for column in table.columns)
        self.log.append(Record(self.at, len(self.log), op, name, table.columns, row))
        self.told.setdefault(name, []).append((op, key))

    def _inserted(self, name: str, count: int) -> None:
        table = self.tables[name]
        for _ in range(count):
            self._keys += 1
            table.rows[self._keys] = {one: self.dice.randint(0, 99) for one in table.values} | {"id": self._keys}
            self._tell("I", name, self._keys)

    def _any(self) -> str | None:
        return self.dice.choice(sorted(self.tables)) if self.tables else None

    def _free(self) -> str | None:
        free = [name for name in NAMES if name not in self.tables]
        return self.dice.choice(free) if free else None

    def _row(self) -> tuple[str, int] | None:
        rows = [(name, key) for name, table in sorted(self.tables.items()) for key in table.rows]
        return self.dice.choice(rows) if rows else None

    def _column(self) -> tuple[str, str] | None:
        columns = [(name, column) for name, table in sorted(self.tables.items()) for column in table.values]
        return self.dice.choice(columns) if columns else None

    def _insert_column(self, name: str, place: int, column: PlainColumn) -> None:
        table = self.tables[name]
        table.columns = (*table.columns[:place], column, *table.columns[place:])
        for row in table.rows.values():
            row[column.name] = column.default

    def _remove_column(self, name: str, column: str) -> None:
        table = self.tables[name]
        table.columns = tuple(one for one in table.columns if one.name != column)
        for row in table.rows.values():
            del row[column]

    def _rename_columns(self, name: str, names: dict[str, str]) -> None:
        table = self.tables[name]
        table.columns = tuple(
            PlainColumn(names.get(one.name, one.name), one.type, one.default) for one in table.columns
        )
        table.rows = {
            key: {names.get(column, column): value for column, value in row.items()} for key, row in table.rows.items()
        }


def _told(column: PlainColumn) -> str:
    default = "" if column.default is None else f" DEFAULT {column.default}"
    return f"{column.name} INT{default}"
