"""Tables take new names or each other's, as by hand and as by the tools for online changes."""

from __future__ import annotations

from tests.chaos.access.columns import quoted
from tests.chaos.statements.alters import alter
from tests.chaos.statements.catalogue import Catalogue
from tests.chaos.statements.schema import create_table, table_name
from tests.chaos.statements.transactions import Table


def swap(catalogue: Catalogue) -> None:
    """Two or three tables take each other's names, in one statement or in several."""
    found = catalogue.some(catalogue.rng.choice([2, 2, 3]))
    if not found:
        return
    names = [one.name for one in found]
    catalogue.do(*catalogue.changes(*names))
    steps = [(names[0], "tmp_swap"), *zip(names[1:], names, strict=False), ("tmp_swap", names[-1])]
    moves = [f"{quoted(old)} TO {quoted(new)}" for old, new in steps]
    if catalogue.rng.random() < 0.6:
        catalogue.do("RENAME TABLE " + ", ".join(moves))
    else:
        for move in moves:
            catalogue.do(f"RENAME TABLE {move}")
    catalogue.do(*catalogue.changes(*names))


def rename(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        new = table_name(catalogue.rng, set(catalogue.names))
        catalogue.do(*catalogue.changes(table.name))
        catalogue.do(f"ALTER TABLE {table.quoted} RENAME TO {quoted(new)}")
        catalogue.do(*catalogue.changes(new))


def rename_kept(catalogue: Catalogue) -> None:
    """A table that keeps more is moved away and back, rebuilt, replaced by an empty one, or made again in its place.

    The loader stops the table that would take its rows, or the rows of another table. Without rows nothing is taken.
    """
    for table in catalogue.keeping():
        rng, name = catalogue.rng, quoted(table.name)
        away = table_name(rng, set(catalogue.names))
        catalogue.do(*catalogue.changes(table.name))
        shape = rng.choice(["back", "rebuilt", "replaced", "made"])
        if shape in {"rebuilt", "replaced"}:
            ghost = f"_{table.name}_gho"
            catalogue.do(f"DROP TABLE IF EXISTS {quoted(ghost)}", f"CREATE TABLE {quoted(ghost)} LIKE {name}")
            copied = _shared(catalogue, table.name, ghost)
            catalogue.do(
                *[f"INSERT INTO {quoted(ghost)} ({copied}) SELECT {copied} FROM {name}"] * (shape == "rebuilt")
            )
            catalogue.do(f"RENAME TABLE {name} TO {quoted(away)}, {quoted(ghost)} TO {name}")
        else:
            catalogue.do(f"RENAME TABLE {name} TO {quoted(away)}", *catalogue.changes(away))
            catalogue.do(
                f"RENAME TABLE {quoted(away)} TO {name}" if shape == "back"
                else create_table(rng, catalogue.kind, table.name, keyed=True)
            )  # fmt: skip
        if table.name not in catalogue.session.tables():  # the server may refuse the new one
            catalogue.do(f"RENAME TABLE {quoted(away)} TO {name}")
        catalogue.do(*catalogue.changes(table.name), f"DROP TABLE IF EXISTS {quoted(away)}")


def rename_absent(catalogue: Catalogue) -> None:
    """Rename tables that exist or do not, as MariaDB allows: it logs the statement also if nothing happens."""
    found = catalogue.some(2)
    if not found:
        return
    one, other = (table.quoted for table in found)
    names = [table.name for table in found]
    make, rename = f"CREATE TABLE made_absent LIKE {other}", "RENAME TABLE IF EXISTS"
    groups = [
        [f"{rename} made_absent TO {one}"],
        [make, "DROP TABLE made_absent", f"{rename} made_absent TO {one}"],
        [f"{rename} {one} TO tmp_swap, {other} TO {one}, tmp_swap TO {other}"],
        [f"{rename} {one} TO tmp_swap, made_absent TO {one}", f"{rename} tmp_swap TO {one}"],
        [make, f"{rename} {one} TO tmp_swap, made_absent TO {one}", "DROP TABLE tmp_swap"],
        [f"DROP TABLE {one}", f"{rename} made_absent TO {other}, {other} TO {one}"],
    ]
    catalogue.do(*catalogue.changes(*names), *catalogue.rng.choice(groups))
    catalogue.do(*catalogue.changes(*names))


def move(catalogue: Catalogue) -> None:
    """Move a table to a schema that is not captured, change it there, and at times bring it back."""
    for table in catalogue.some(1):
        outside = f"outside.{quoted(table.name)}"
        catalogue.do("CREATE DATABASE IF NOT EXISTS outside", *catalogue.changes(table.name))
        catalogue.do(f"DROP TABLE IF EXISTS {outside}", f"RENAME TABLE {table.quoted} TO {outside}")
        if catalogue.rng.random() < 0.5:
            catalogue.do(f"DELETE FROM {outside} LIMIT 2", f"RENAME TABLE {outside} TO {table.quoted}")
            catalogue.do(*catalogue.changes(table.name))


def gh_ost(catalogue: Catalogue) -> None:
    """Fill another table, keep it up, and swap the names in one statement."""
    for table in catalogue.some(1):
        rng, name = catalogue.rng, table.name[:50]
        ghost, gone = f"_{name}_gho", f"_{name}_del"
        catalogue.do(f"CREATE TABLE {quoted(ghost)} LIKE {table.quoted}")
        if rng.random() < 0.7:
            catalogue.do(alter(catalogue, Table(catalogue.session, ghost)))
        copied = _shared(catalogue, table.name, ghost)
        catalogue.do(f"INSERT IGNORE INTO {quoted(ghost)} ({copied}) SELECT {copied} FROM {table.quoted}")
        catalogue.do(*catalogue.changes(table.name, ghost))
        catalogue.do(f"RENAME TABLE {table.quoted} TO {quoted(gone)}, {quoted(ghost)} TO {table.quoted}")
        catalogue.do(*catalogue.changes(table.name))
        if rng.random() < 0.8:
            catalogue.do(f"DROP TABLE {quoted(gone)}")


def pt_osc(catalogue: Catalogue) -> None:
    """Fill another table by triggers and by copying, then swap the names."""
    for table in catalogue.some(1):
        name = table.name[:50]
        new, old = f"_{name}_new", f"_{name}_old"
        catalogue.do(f"CREATE TABLE {quoted(new)} LIKE {table.quoted}")
        catalogue.do(alter(catalogue, Table(catalogue.session, new)))
        copied = _shared(catalogue, table.name, new)
        values = ", ".join(f"NEW.{one}" for one in copied.split(", "))
        trigger, *others = (quoted(f"pt_{event}_{name[:40]}") for event in ("ins", "upd", "del"))
        same = " AND ".join(f"{quoted(new)}.{one.quoted} <=> OLD.{one.quoted}" for one in table.key)
        delete = f"DELETE IGNORE FROM {quoted(new)} WHERE {same}"
        more = [
            f"CREATE TRIGGER {others[0]} AFTER UPDATE ON {table.quoted} FOR EACH ROW BEGIN {delete};"
            f" REPLACE INTO {quoted(new)} ({copied}) VALUES ({values}); END",
            f"CREATE TRIGGER {others[1]} AFTER DELETE ON {table.quoted} FOR EACH ROW {delete}",
        ] * bool(table.key)
        catalogue.do(
            f"CREATE TRIGGER {trigger} AFTER INSERT ON {table.quoted} FOR EACH ROW"
            f" REPLACE INTO {quoted(new)} ({copied}) VALUES ({values})",
            *more,
            *catalogue.changes(table.name),
            f"INSERT IGNORE INTO {quoted(new)} ({copied}) SELECT {copied} FROM {table.quoted}",
            *catalogue.changes(table.name),
            f"RENAME TABLE {table.quoted} TO {quoted(old)}, {quoted(new)} TO {table.quoted}",
            f"DROP TABLE IF EXISTS {quoted(old)}",
            *(f"DROP TRIGGER IF EXISTS {one}" for one in (trigger, *others)),
        )
        catalogue.do(*catalogue.changes(table.name))


def _shared(catalogue: Catalogue, one: str, other: str) -> str:
    theirs = {column.name for column in Table(catalogue.session, other).columns}
    return ", ".join(column.quoted for column in Table(catalogue.session, one).columns if column.name in theirs)
