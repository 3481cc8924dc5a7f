"""Random statements about tables as a whole, each a list of statements that belong together."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.chaos.schema import column, column_name, column_type, create_table, table_name
from tests.chaos.source import Session
from tests.chaos.values import quoted
from tests.chaos.workload import Table, change, insert

_WIDER = {
    "tinyint": "SMALLINT", "smallint": "INT", "mediumint": "INT", "int": "BIGINT", "float": "DOUBLE", "tinytext": "TEXT",
    "text": "MEDIUMTEXT", "varchar": "VARCHAR(400)", "char": "CHAR(30)", "varbinary": "VARBINARY(60)", "blob": "LONGBLOB",
}  # fmt: skip


class Catalogue:
    """What a writer of DDL may use: its session, its dice, and the tables that there are."""

    def __init__(self, rng: Random, session: Session, kind: str) -> None:
        self.rng, self.session, self.kind = rng, session, kind
        self.names = session.tables()

    def some(self, count: int) -> list[Table]:
        """Return so many different tables, or none where there are too few."""
        chosen = self.rng.sample(self.names, count) if len(self.names) >= count else []
        return [Table(self.session, one) for one in chosen]

    def changes(self, *names: str) -> list[str]:
        """Return some changes of rows in tables by the names and columns that they have now."""
        found = [Table(self.session, one) for one in names]
        return [change(self.rng, one) for one in found if one.columns for _ in range(self.rng.randint(0, 2))]


def run(catalogue: Catalogue, without: frozenset[str]) -> None:
    """Run one random group of statements, with changes of rows right before and after them."""
    allowed = [(weight, make) for weight, name, make in _GROUPS if name not in without]
    make = catalogue.rng.choices([one for _, one in allowed], [weight for weight, _ in allowed])[0]
    make(catalogue)


def _do(catalogue: Catalogue, *sql: str) -> None:
    for one in sql:
        catalogue.session.execute(one)


def _swap(catalogue: Catalogue) -> None:
    """Two or three tables take each other's names, in one statement or in several."""
    found = catalogue.some(catalogue.rng.choice([2, 2, 3]))
    if not found:
        return
    names = [one.name for one in found]
    _do(catalogue, *catalogue.changes(*names))
    steps = [(names[0], "tmp_swap"), *zip(names[1:], names, strict=False), ("tmp_swap", names[-1])]
    moves = [f"{quoted(old)} TO {quoted(new)}" for old, new in steps]
    if catalogue.rng.random() < 0.6:
        _do(catalogue, "RENAME TABLE " + ", ".join(moves))
    else:
        for move in moves:
            _do(catalogue, f"RENAME TABLE {move}")
    _do(catalogue, *catalogue.changes(*names))


def _rename(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        new = table_name(catalogue.rng, set(catalogue.names))
        _do(catalogue, *catalogue.changes(table.name))
        _do(catalogue, f"ALTER TABLE {table.quoted} RENAME TO {quoted(new)}")
        _do(catalogue, *catalogue.changes(new))


def _gh_ost(catalogue: Catalogue) -> None:
    """Fill another table, keep it up, and swap the names in one statement."""
    for table in catalogue.some(1):
        rng, name = catalogue.rng, table.name[:50]
        ghost, gone = f"_{name}_gho", f"_{name}_del"
        _do(catalogue, f"CREATE TABLE {quoted(ghost)} LIKE {table.quoted}")
        if rng.random() < 0.7:
            _do(catalogue, _alter(catalogue, Table(catalogue.session, ghost)))
        copied = _shared(catalogue, table.name, ghost)
        _do(catalogue, f"INSERT IGNORE INTO {quoted(ghost)} ({copied}) SELECT {copied} FROM {table.quoted}")
        _do(catalogue, *catalogue.changes(table.name, ghost))
        _do(catalogue, f"RENAME TABLE {table.quoted} TO {quoted(gone)}, {quoted(ghost)} TO {table.quoted}")
        _do(catalogue, *catalogue.changes(table.name))
        if rng.random() < 0.8:
            _do(catalogue, f"DROP TABLE {quoted(gone)}")


def _pt_osc(catalogue: Catalogue) -> None:
    """Fill another table by triggers and by copying, then swap the names."""
    for table in catalogue.some(1):
        name = table.name[:50]
        new, old = f"_{name}_new", f"_{name}_old"
        _do(catalogue, f"CREATE TABLE {quoted(new)} LIKE {table.quoted}")
        _do(catalogue, _alter(catalogue, Table(catalogue.session, new)))
        copied = _shared(catalogue, table.name, new)
        values = ", ".join(f"NEW.{one}" for one in copied.split(", "))
        trigger = quoted(f"pt_{name[:40]}")
        _do(
            catalogue,
            f"CREATE TRIGGER {trigger} AFTER INSERT ON {table.quoted} FOR EACH ROW"
            f" REPLACE INTO {quoted(new)} ({copied}) VALUES ({values})",
            *catalogue.changes(table.name),
            f"INSERT IGNORE INTO {quoted(new)} ({copied}) SELECT {copied} FROM {table.quoted}",
            *catalogue.changes(table.name),
            f"RENAME TABLE {table.quoted} TO {quoted(old)}, {quoted(new)} TO {table.quoted}",
            f"DROP TABLE IF EXISTS {quoted(old)}",
            f"DROP TRIGGER IF EXISTS {trigger}",
        )
        _do(catalogue, *catalogue.changes(table.name))


def _shared(catalogue: Catalogue, one: str, other: str) -> str:
    theirs = {column.name for column in Table(catalogue.session, other).columns}
    return ", ".join(column.quoted for column in Table(catalogue.session, one).columns if column.name in theirs)


def _change_columns(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        _do(catalogue, *catalogue.changes(table.name), _alter(catalogue, table))
        _do(catalogue, *catalogue.changes(table.name))


def _alter(catalogue: Catalogue, table: Table) -> str:
    rng = catalogue.rng
    parts = [_part(catalogue, table) for _ in range(rng.choice([1, 1, 1, 2]))]
    return f"ALTER TABLE {table.quoted} {', '.join(parts)}"


def _part(catalogue: Catalogue, table: Table) -> str:
    rng = catalogue.rng
    names = {one.name for one in table.columns}
    if not table.others or (rng.random() < 0.4 and len(names) < 12):
        new = column(rng, catalogue.kind, column_name(rng, names))
        where = rng.choice(["", "", " FIRST", f" AFTER {rng.choice(table.columns).quoted}" if table.columns else ""])
        return f"ADD COLUMN {new}{where}"
    chosen, shape = rng.choice(table.others), rng.random()
    if shape < 0.35 and len(table.others) > 1:
        return f"DROP COLUMN {chosen.quoted}"
    if shape < 0.6:
        return f"RENAME COLUMN {chosen.quoted} TO {quoted(column_name(rng, names))}"
    if shape < 0.85 and chosen.type in _WIDER and "unsigned" not in chosen.declared:
        where = rng.choice(["", " FIRST"])
        return f"MODIFY COLUMN {chosen.quoted} {_WIDER[chosen.type]}{_charset(chosen.charset)}{where}"
    if shape < 0.9:
        return f"MODIFY COLUMN {chosen.quoted} {column_type(rng, catalogue.kind)}"
    return f"CONVERT TO CHARACTER SET {rng.choice(['utf8mb4', 'utf8mb4', 'latin1'])}"


def _charset(charset: str | None) -> str:
    return f" CHARACTER SET {charset}" if charset else ""


def _change_key(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        names = [one.quoted for one in table.key]
        extra = [one.quoted for one in table.others if one.type in {"int", "date", "varchar"} and not one.nullable]
        drop = ["DROP PRIMARY KEY"] if names else []
        new = catalogue.rng.choice([names[::-1], names + extra[:1], extra[:1] + names, []])
        add = [f"ADD PRIMARY KEY ({', '.join(dict.fromkeys(new))})"] if new else []
        if drop + add:
            _do(catalogue, *catalogue.changes(table.name))
            _do(catalogue, f"ALTER TABLE {table.quoted} {', '.join(drop + add)}")
            _do(catalogue, *catalogue.changes(table.name))


def _truncate(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        _do(catalogue, *catalogue.changes(table.name), f"TRUNCATE TABLE {table.quoted}")
        _do(catalogue, *catalogue.changes(table.name))


def _drop_create(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        _do(catalogue, *catalogue.changes(table.name), f"DROP TABLE {table.quoted}")
        _do(catalogue, create_table(catalogue.rng, catalogue.kind, table.name))
        _fill(catalogue, table.name)


def _create(catalogue: Catalogue) -> None:
    if len(catalogue.names) > 14:
        return _drop(catalogue)
    name = table_name(catalogue.rng, set(catalogue.names))
    _do(catalogue, create_table(catalogue.rng, catalogue.kind, name))
    return _fill(catalogue, name)


def _drop(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        _do(catalogue, *catalogue.changes(table.name), f"DROP TABLE {table.quoted}")


def _create_like(catalogue: Catalogue) -> None:
    if len(catalogue.names) > 14:
        return _drop(catalogue)
    for table in catalogue.some(1):
        name = table_name(catalogue.rng, set(catalogue.names))
        _do(catalogue, f"CREATE TABLE {quoted(name)} LIKE {table.quoted}")
        if catalogue.rng.random() < 0.6:
            copied = ", ".join(one.quoted for one in table.columns)
            _do(catalogue, f"INSERT INTO {quoted(name)} ({copied}) SELECT {copied} FROM {table.quoted}")
        _fill(catalogue, name)
    return None


def _create_select(catalogue: Catalogue) -> None:
    if len(catalogue.names) > 14:
        return _drop(catalogue)
    for table in catalogue.some(1):
        name = table_name(catalogue.rng, set(catalogue.names))
        _do(catalogue, f"CREATE TABLE {quoted(name)} AS SELECT * FROM {table.quoted}")
        _do(catalogue, *catalogue.changes(name))
    return None


def _fill(catalogue: Catalogue, name: str) -> None:
    table = Table(catalogue.session, name)
    if table.columns:
        _do(catalogue, insert(catalogue.rng, table), *catalogue.changes(name))


_GROUPS: list[tuple[int, str, Callable[[Catalogue], None]]] = [
    (6, "renames", _swap),
    (2, "renames", _rename),
    (3, "rebuilds", _gh_ost),
    (3, "rebuilds", _pt_osc),
    (8, "alters", _change_columns),
    (2, "keys", _change_key),
    (2, "truncates", _truncate),
    (2, "drops", _drop_create),
    (3, "creates", _create),
    (1, "drops", _drop),
    (2, "creates", _create_like),
    (1, "creates", _create_select),
]
"""Weight, name for `--without`, and what is run."""
