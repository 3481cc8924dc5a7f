"""Tables that change each other: foreign keys with cascades, and triggers."""

from __future__ import annotations

from random import Random

from tests.chaos.access.columns import quoted
from tests.chaos.statements.catalogue import Catalogue
from tests.chaos.statements.schema import table_name
from tests.chaos.statements.transactions import KEYS, Table, insert


def foreign_key(catalogue: Catalogue) -> None:
    """Make a child of a table with a number for a key, whose rows the server changes with those of the parent."""
    parents = [one for one in catalogue.some(1) if len(one.key) == 1 and one.key[0].type == "int"]
    if not parents or len(catalogue.names) > 14:
        return
    rng, parent = catalogue.rng, parents[0]
    name = table_name(rng, set(catalogue.names))
    # MariaDB does not log the rows that a cascade changes, so the loader must refuse such a table.
    acts = ["CASCADE", "SET NULL"] + ["RESTRICT"] * 4 * (catalogue.kind == "mariadb")
    catalogue.do(
        f"CREATE TABLE {quoted(name)} (k0 INT PRIMARY KEY, parent {parent.key[0].declared}, v VARCHAR(9),"
        f" FOREIGN KEY (parent) REFERENCES {parent.quoted} ({parent.key[0].quoted})"
        f" ON DELETE {rng.choice(acts)} ON UPDATE {rng.choice(acts)})",
        insert(rng, parent),
        f"INSERT IGNORE INTO {quoted(name)} SELECT {parent.key[0].quoted}, {parent.key[0].quoted}, 'child'"
        f" FROM {parent.quoted} ORDER BY 1 LIMIT 20",
        *catalogue.changes(parent.name, parent.name, name),
    )


def trigger(catalogue: Catalogue) -> None:
    """Create a trigger that changes the row itself or another table, and drop it at times."""
    rng, found = catalogue.rng, catalogue.some(2)
    if len(found) < 2 or not found[0].columns:
        return
    one, other = found
    name = quoted(f"tr_{one.name}"[:50])
    event, row = rng.choice([("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")])
    catalogue.do(f"DROP TRIGGER IF EXISTS {name}")
    if row == "NEW" and one.others and rng.random() < 0.3:
        column = rng.choice(one.others)
        catalogue.do(
            f"CREATE TRIGGER {name} BEFORE {event} ON {one.quoted} FOR EACH ROW"
            f" SET NEW.{column.quoted} = {one.value(rng, column)}"
        )
    elif keys := [key for key in one.key if key.type == "int"]:
        act = _act(rng, other, f"{row}.{keys[0].quoted}")
        catalogue.do(f"CREATE TRIGGER {name} AFTER {event} ON {one.quoted} FOR EACH ROW {act}")
    catalogue.do(*catalogue.changes(one.name, one.name, other.name))
    if rng.random() < 0.5:
        catalogue.do(f"DROP TRIGGER IF EXISTS {name}")


def trigger_outside(catalogue: Catalogue) -> None:
    """Change a table that is not captured, by rows or by a statement, and by its trigger one that is."""
    rng = catalogue.rng
    for table in catalogue.some(1):
        # Its session logs the statement: the log does not have the rows of the captured table, so the loader must stop it.
        logged = rng.random() < 0.1
        catalogue.do(
            "CREATE DATABASE IF NOT EXISTS outside",
            "CREATE TABLE IF NOT EXISTS outside.source (id INT PRIMARY KEY)",
            "DROP TRIGGER IF EXISTS outside.changes",
            f"CREATE TRIGGER outside.changes AFTER INSERT ON outside.source FOR EACH ROW {_act(rng, table, 'NEW.id')}",
            *catalogue.changes(table.name),
            *["SET SESSION binlog_format = STATEMENT"] * logged,
            f"REPLACE INTO outside.source VALUES ({rng.randint(1, KEYS)}), ({rng.randint(1, KEYS)})",
            *["SET SESSION binlog_format = ROW"] * logged,
            *catalogue.changes(table.name),
            "DROP TRIGGER IF EXISTS outside.changes",
        )


def _act(rng: Random, table: Table, number: str) -> str:
    """Return what a trigger does to a table for a number: a change of the rows with this key, or new rows."""
    keys = [one for one in table.key if one.type == "int"]
    if not keys or rng.random() < 0.3:
        return insert(rng, table, rng.choice(["INSERT IGNORE INTO", "REPLACE INTO"]))
    key = keys[0].quoted
    if rng.random() < 0.4:
        return f"DELETE FROM {table.quoted} WHERE {key} = {number}"
    column = (table.others or table.columns)[0].quoted
    return f"UPDATE {table.quoted} SET {column} = {column if not table.others else 'NULL'} WHERE {key} = {number}"
