"""A server in Python with one table, that changes rows at random and writes its log: what every merge must come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from loader.model.table import Column, TableSchema
from tests.integration.materialise.staged_writer import Change, table

Row = tuple[Any, ...]

NASTY = ("", "a", "A", "a ", "\\", "\\x61", "\n", "'q'", '"', "\0\r", "ä", "\\N", "null", "b" * 40)
KEYS = {
    "int": [Column("id", "int")],
    "text": [Column("k", "varchar", charset="utf8mb4")],
    "mixed": [Column("raw", "varbinary"), Column("at", "datetime", size=6), Column("k", "varchar", charset="utf8mb4")],
}
BLOBS = {"text", "blob"}
VALUES = [
    Column("n", "bigint"),
    Column("t", "text", charset="utf8mb4"),
    Column("b", "blob"),
    Column("d", "datetime", size=6),
    Column("f", "double"),
    Column("e", "varchar", charset="utf8mb4"),
]


def value(dice: Random, column: Column, *, null: bool = True) -> Any:
    """A value as `loader.materialise` reads it, but points in time and floating-point numbers as text."""
    if null and dice.random() < 0.2:
        return None
    if column.type in {"int", "bigint"}:
        return dice.randrange(40)
    if column.type == "datetime":
        return f"20{dice.randrange(10, 40)}-01-02 03:04:05.{dice.randrange(1, 4):06}"
    if column.type == "double":
        return dice.choice(["0.0", "-0.0", "1.5", "1e+100"])
    return dice.choice(NASTY).encode() if column.type in {"varbinary", "blob"} else dice.choice(NASTY)


def plain(found: Any) -> Any:
    """A value of the warehouse in that form."""
    if isinstance(found, float):
        return repr(found)
    return found if found is None or isinstance(found, (int, str, bytes)) else str(found)


class Server:
    """One table.

    Attributes:
        rows: by key; without a key by a number of their own.
        log: its records as they are staged, and `whole`, the same with nothing left out.
        gone: what deleted keys had last.
    """

    def __init__(self, dice: Random, name: str, key: str, image: str, *, both: bool) -> None:
        self.dice = dice
        self.image = image if key else "FULL"
        self.both = both
        columns = [*(KEYS[key] if key else []), *VALUES]
        dice.shuffle(columns)
        self.schema: TableSchema = table(name, columns, [column.name for column in KEYS[key]] if key else [])
        self.rows: dict[Row, Row] = {}
        self.gone: dict[Row, Row] = {}
        self.log: list[Change] = []
        self.whole: list[Change] = []
        self._key = [n for n, column in enumerate(columns) if column.name in self.schema.key]
        self._next = 0

    def bag(self) -> Counter[Row]:
        return Counter(self.rows.values())

    def transaction(self, seqno: int, most: int = 4, *, moves: bool = True) -> None:
        """One to `most` statements; without `moves` no key changes."""
        self._seqno, self._offset = seqno, 100
        moving = (self._move, self._swap, self._march, self._recase) if self._key and moves else ()
        for _ in range(self.dice.randint(1, most)):
            self.dice.choice((self._insert, self._insert, self._change, self._change, self._delete, *moving))()

    def _of(self, row: Row) -> Row:
        return tuple(row[n] for n in self._key)

    def _new_key(self) -> Row | None:
        """A key that no row has, without regard to case, as a collation of the server would see it."""
        columns = [self.schema.columns[n] for n in self._key]
        key = tuple(value(self.dice, column, null=False) for column in columns)
        return key if folded(key) not in set(map(folded, self.rows)) else None

    def _some(self, key: Row = ()) -> Row:
        values = iter(key)
        return tuple(
            next(values) if n in self._key else value(self.dice, column) for n, column in enumerate(self.schema.columns)
        )

    def _insert(self) -> None:
        key = self._new_key() if self._key else ()
        if key is None:
            return
        row = self._some(key)
        self.rows[key or self._number()] = row
        self._log("I", row, ())
        if self.dice.random() < 0.1:  # and once more, for tables without a key: equal rows
            self._insert()

    def _number(self) -> Row:
        self._next += 1
        return (self._next,)

    def _pick(self) -> Row | None:
        return self.dice.choice(list(self.rows)) if self.rows else None

    def _delete(self) -> None:
        if (key := self._pick()) is None:
            return
        row = self.rows.pop(key)
        self._log("D", row, self._left_out(row, row))
        if self._key and self.dice.random() < 0.3:
            self.rows[key] = self._some(key)
            self._log("I", self.rows[key], ())

    def _change(self) -> None:
        if (key := self._pick()) is not None:
            old = self.rows[key]
            new = tuple(
                v if n in self._key or self.dice.random() < 0.6 else value(self.dice, self.schema.columns[n])
                for n, v in enumerate(old)
            )
            self._update(key, new)

    def _move(self) -> None:
        key, to = self._pick(), self._new_key()
        if key is not None and to is not None:
            self._rename(key, to)

    def _rename(self, key: Row, to: Row) -> None:
        values = iter(to)
        changed = self.dice.randrange(len(self.schema.columns))
        self._update(key, tuple(
            next(values) if n in self._key
            else value(self.dice, self.schema.columns[n]) if n == changed else v
            for n, v in enumerate(self.rows[key])
        ))  # fmt: skip

    def _swap(self) -> None:
        one, other, free = self._pick(), self._pick(), self._new_key()
        if one is not None and other is not None and free is not None and one != other:
            for key, to in ((one, free), (other, one), (free, other)):
                self._rename(key, to)

    def _march(self) -> None:
        """One row from key to key to key."""
        for _ in range(3):
            self._move()
            self.rows = dict(reversed(self.rows.items()))

    def _recase(self) -> None:
        """A key that is another one for the warehouse, but not for the server."""
        if (key := self._pick()) is not None:
            to = tuple(part.swapcase() if isinstance(part, str) else part for part in key)
            if to != key:
                self._rename(key, to)

    def _update(self, key: Row, new: Row) -> None:
        old = self.rows.pop(key)
        to = self._of(new) if self._key else key
        self.rows[to] = new
        if not self.both and self._key and to == key:
            self._log("U", new, self._left_out(old, new))
            return
        before = self._left_out(old, old)
        self._log("D", old, before)
        self._log("I", new, [n for n in before if old[n] == new[n] or new[n] is old[n]], follows=True)

    def _left_out(self, old: Row, new: Row) -> Sequence[int]:
        """Columns that an image leaves out: of `new` after an update of `old`, of `old` before it when both are it."""
        if self.image == "FULL":
            return ()
        same = [n for n, (a, b) in enumerate(zip(old, new, strict=True)) if a == b and n not in self._key]
        return same if self.image == "MINIMAL" else [n for n in same if self.schema.columns[n].type in BLOBS]

    def _log(self, op: str, row: Row, absent: Sequence[int], *, follows: bool = False) -> None:
        if self._key:
            self.gone.pop(self._of(row), None)
            if op == "D":
                self.gone[self._of(row)] = row
        self._offset += self.dice.randint(1, 40)
        bits = sum(1 << n for n in absent) + (follows << len(row) if absent else 0)
        size = -(-(len(row) + follows) // 8)
        text = bits.to_bytes(size, "little").hex() if absent else ""
        staged = tuple(None if n in absent else v for n, v in enumerate(row))
        self.log.append(Change(op, self._seqno, self._offset, staged, text))
        self.whole.append(Change(op, self._seqno, self._offset, row))


def folded(key: Row) -> Row:
    return tuple(part.casefold() if isinstance(part, str) else part for part in key)


def between(changes: Sequence[Change], low: int, high: int) -> Iterator[Change]:
    return (change for change in changes if low < change.seqno <= high)
