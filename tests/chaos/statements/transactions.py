"""Random transactions: every kind of statement that changes rows, committed, rolled back, and prepared by XA."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.chaos.access.columns import Column, quoted
from tests.chaos.access.source import Session
from tests.chaos.statements.values import key_literal, literal

KEYS = 60
"""Numbers that keys are made of: few, so that rows are found, replaced and inserted again."""


class Table:
    """What a writer knows of one table at this moment."""

    def __init__(self, session: Session, name: str) -> None:
        self.name = name
        every = session.columns(name)
        self.key = [one for key in session.key(name) for one in every if one.name == key]
        self.columns = [one for one in every if not one.generated]
        self.others = [one for one in self.columns if one.name not in {key.name for key in self.key}]

    @property
    def quoted(self) -> str:
        return quoted(self.name)

    def value(self, rng: Random, column: Column, keys: int = KEYS) -> str:
        """Return a value that fits the column's place in the table; those of keys are made of so many numbers."""
        if column in self.key:
            return key_literal(rng, column, rng.randint(1, keys))
        return literal(rng, column)

    def place(self, rng: Random) -> str:
        """Return a WHERE that finds few rows in an order that does not depend on the server."""
        if not self.key:
            return f"LIMIT {rng.randint(1, 3)}"
        order = ", ".join(one.quoted for one in self.key)
        chosen = self.key[rng.randrange(len(self.key))]
        operator = rng.choice(["=", "=", ">=", "<="])
        return f"WHERE {chosen.quoted} {operator} {self.value(rng, chosen)} ORDER BY {order} LIMIT {rng.randint(1, 4)}"


def insert(rng: Random, table: Table, verb: str = "INSERT IGNORE INTO", rows: int = 0) -> str:
    """Return an insert of some rows; columns are left out at times so that defaults count."""
    columns = [one for one in table.columns if one in table.key or rng.random() < 0.9] or table.columns
    names = ", ".join(one.quoted for one in columns)
    count = rows or rng.choice([1, 1, 1, 2, 5, 12])
    values = ", ".join(
        f"({', '.join(table.value(rng, one, max(KEYS, count)) for one in columns)})" for _ in range(count)
    )
    return f"{verb} {table.quoted} ({names}) VALUES {values}"


def _plain(rng: Random, table: Table) -> str:
    return insert(rng, table, "INSERT INTO", 1)


def _replace(rng: Random, table: Table) -> str:
    return insert(rng, table, "REPLACE INTO")


def _upsert(rng: Random, table: Table) -> str:
    changed = rng.choice(table.others or table.columns)
    new = table.value(rng, changed)
    return f"{insert(rng, table, 'INSERT INTO')} ON DUPLICATE KEY UPDATE {changed.quoted} = {new}"


def _update(rng: Random, table: Table) -> str:
    columns = rng.sample(table.others or table.columns, k=min(rng.randint(1, 3), len(table.others or table.columns)))
    changes = ", ".join(f"{one.quoted} = {table.value(rng, one)}" for one in columns)
    return f"UPDATE IGNORE {table.quoted} SET {changes} {table.place(rng)}"


def _key_change(rng: Random, table: Table) -> str:
    if not table.key:
        return _update(rng, table)
    chosen = rng.choice(table.key)
    return f"UPDATE IGNORE {table.quoted} SET {chosen.quoted} = {table.value(rng, chosen)} {table.place(rng)}"


def _keys_up(rng: Random, table: Table) -> str:
    numeric = [one for one in table.key if one.type in {"int", "bigint", "smallint", "decimal"}]
    if not numeric:
        return _key_change(rng, table)
    name = numeric[0].quoted
    return f"UPDATE {table.quoted} SET {name} = {name} + 1 ORDER BY {name} DESC LIMIT {rng.randint(1, 30)}"


def _update_all(rng: Random, table: Table) -> str:
    column = rng.choice(table.others or table.columns)
    return f"UPDATE IGNORE {table.quoted} SET {column.quoted} = {table.value(rng, column)}"


def _delete_all(rng: Random, table: Table) -> str:
    return f"DELETE FROM {table.quoted}"


def _delete(rng: Random, table: Table) -> str:
    return f"DELETE FROM {table.quoted} {table.place(rng)}"


_ONE_TABLE: list[tuple[float, Callable[[Random, Table], str]]] = [
    (5, insert), (2, _plain), (3, _replace), (3, _upsert), (6, _update), (2, _key_change), (1, _keys_up), (3, _delete),
    (1, _update_all), (0.3, _delete_all),
]  # fmt: skip


def change(rng: Random, table: Table) -> str:
    """Return one statement that changes rows of one table."""
    weights = [weight for weight, _ in _ONE_TABLE]
    return rng.choices([make for _, make in _ONE_TABLE], weights)[0](rng, table)


def two_tables(rng: Random, one: Table, other: Table) -> str:
    """Return an UPDATE or DELETE of rows of two tables at once, joined by the text of a key."""
    pairs = [(a, b) for a in one.key for b in other.key if a.type == b.type == "int"]
    if not pairs or not one.others or not other.others:
        return change(rng, one)
    a, b = rng.choice(pairs)
    joined = f"{one.quoted} AS a, {other.quoted} AS b"
    where = f"a.{a.quoted} = b.{b.quoted} AND a.{a.quoted} = {one.value(rng, a)}"
    if rng.random() < 0.3:
        return f"DELETE a, b FROM {joined} WHERE {where}"
    x, y = rng.choice(one.others), rng.choice(other.others)
    return f"UPDATE {joined} SET a.{x.quoted} = {one.value(rng, x)}, b.{y.quoted} = {other.value(rng, y)} WHERE {where}"


def insert_select(rng: Random, one: Table, other: Table) -> str:
    """Return an insert of rows that a query finds, in one table or from another one."""
    columns = [a for a in one.columns if any(b.name == a.name for b in other.columns)]
    if not columns or {key.name for key in one.key} - {column.name for column in columns}:
        return change(rng, one)
    names = ", ".join(column.quoted for column in columns)
    return f"REPLACE INTO {one.quoted} ({names}) SELECT {names} FROM {other.quoted} {other.place(rng)}"


def key_swap(rng: Random, table: Table) -> list[str]:
    """Return statements that make two rows change keys; none for keys that are no single number."""
    if len(table.key) != 1 or table.key[0].type != "int":
        return [change(rng, table)]
    name, (x, y) = table.key[0].quoted, rng.sample(range(1, KEYS), 2)
    moves = [(x, -77), (y, x), (-77, y)]
    return [f"UPDATE {table.quoted} SET {name} = {new} WHERE {name} = {old}" for old, new in moves]


def statements(rng: Random, tables: list[Table], most: int = 6) -> list[str]:
    """Return the changes of one transaction."""
    found = list[str]()
    for _ in range(rng.choice([1, 1, 2, 3, most])):
        table, shape = rng.choice(tables), rng.random()
        if shape < 0.06:
            found += key_swap(rng, table)
        elif shape < 0.14:
            found.append(two_tables(rng, table, rng.choice(tables)))
        elif shape < 0.17:
            found.append(insert_select(rng, table, rng.choice(tables)))
        elif shape < 0.19:
            found.append(insert(rng, table, rows=rng.choice([100, 300, 300, 5000])))
        else:
            found.append(change(rng, table))
    return found


def transaction(rng: Random, session: Session, tables: list[Table], number: str) -> None:
    """Run one transaction: committed, rolled back, partly rolled back, XA, or each statement alone."""
    changes = statements(rng, tables)
    shape = rng.random()
    if shape < 0.35:
        for sql in changes:
            session.execute(sql)
    elif shape < 0.75:
        _between(session, "BEGIN", changes, "COMMIT")
    elif shape < 0.82:
        _between(session, "BEGIN", changes, "ROLLBACK")
    elif shape < 0.92:
        middle = rng.randint(0, len(changes))
        undone = ["SAVEPOINT here", *changes[middle:], "ROLLBACK TO SAVEPOINT here", *statements(rng, tables, 2)]
        _between(session, "BEGIN", [*changes[:middle], *undone], "COMMIT")
    else:
        _xa(rng, session, changes, number)


def _between(session: Session, begin: str, changes: list[str], end: str) -> None:
    for sql in (begin, *changes, end):
        if session.execute(sql) in {-1, 1213}:  # lost, or a deadlock that rolled everything back
            return


def _xa(rng: Random, session: Session, changes: list[str], number: str) -> None:
    name = f"'{session.writer}-{number}'"
    _between(session, f"XA START {name}", changes, f"XA END {name}")
    session.execute(f"XA PREPARE {name}")
    if rng.random() < 0.15:
        session.close()  # it stays prepared until somebody else ends it
    elif session.execute(rng.choice([f"XA COMMIT {name}"] * 3 + [f"XA ROLLBACK {name}"])):
        session.execute(f"XA ROLLBACK {name}")
