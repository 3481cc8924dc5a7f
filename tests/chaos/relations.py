"""Tables that change each other: foreign keys with cascades, and triggers."""

from __future__ import annotations

from tests.chaos.catalogue import Catalogue
from tests.chaos.schema import table_name
from tests.chaos.values import quoted
from tests.chaos.workload import Table, insert


def foreign_key(catalogue: Catalogue) -> None:
    """Make a child of a table with a number for a key, whose rows the server changes with those of the parent."""
    parents = [one for one in catalogue.some(1) if len(one.key) == 1 and one.key[0].type == "int"]
    if not parents or len(catalogue.names) > 14:
        return
    rng, parent = catalogue.rng, parents[0]
    name = table_name(rng, set(catalogue.names))
    # MariaDB logs nothing of what a cascade does to the child: the loader refuses such tables, see docs/reference/limits.md.
    acts = ["CASCADE", "SET NULL"] if catalogue.kind == "mysql" else ["RESTRICT"]
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
    """Make a table's changes change another one, or take such a trigger away."""
    rng, found = catalogue.rng, catalogue.some(2)
    pairs = [(one, key) for one in found for key in one.key if key.type == "int"]
    if len(pairs) < 2 or pairs[0][0] is pairs[-1][0]:
        return
    (one, _), (other, key) = pairs[0], pairs[-1]
    name = quoted(f"tr_{one.name}"[:50])
    event, row = rng.choice([("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")])
    source = one.key[0].quoted
    catalogue.do(
        f"DROP TRIGGER IF EXISTS {name}",
        f"CREATE TRIGGER {name} AFTER {event} ON {one.quoted} FOR EACH ROW"
        f" UPDATE {other.quoted} SET {_target(other)} WHERE {key.quoted} = {row}.{source}",
        *catalogue.changes(one.name, one.name, other.name),
    )
    if rng.random() < 0.5:
        catalogue.do(f"DROP TRIGGER IF EXISTS {name}")


def _target(table: Table) -> str:
    column = (table.others or table.columns)[0].quoted
    return f"{column} = {column}" if not table.others else f"{column} = NULL"
