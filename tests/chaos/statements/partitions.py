"""Partitions of tables change: without a change of rows, or with one that the log does not tell."""

from __future__ import annotations

from tests.chaos.access.columns import quoted
from tests.chaos.statements.catalogue import Catalogue
from tests.chaos.statements.schema import table_name

_ACTS = [
    "ADD PARTITION PARTITIONS 1",
    "COALESCE PARTITION 1",
    "TRUNCATE PARTITION p0",
    "REMOVE PARTITIONING",
    "DROP PARTITION p1",
    "REORGANIZE PARTITION p0, p1 INTO (PARTITION p0 VALUES LESS THAN (40))",
    "REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES LESS THAN (25), PARTITION p3 VALUES LESS THAN (40))",
    "REBUILD PARTITION p0",
    "PARTITION BY KEY () PARTITIONS 2",
]


def change(catalogue: Catalogue) -> None:
    """Alter partitions; the server refuses what does not fit those of the table."""
    for table in catalogue.some(1, kept=True):
        act = catalogue.rng.choice(_ACTS)
        catalogue.do(
            *catalogue.changes(table.name), f"ALTER TABLE {table.quoted} {act}", *catalogue.changes(table.name)
        )


def exchange(catalogue: Catalogue) -> None:
    """A partition and a table change their rows, or, on MariaDB, one becomes the other."""
    for table in catalogue.some(1):
        rng, name = catalogue.rng, table_name(catalogue.rng, set(catalogue.names))
        acts = [
            f"EXCHANGE PARTITION p0 WITH TABLE {quoted(name)} {rng.choice(['', 'WITHOUT VALIDATION'])}".rstrip()
        ] * 2
        if catalogue.kind == "mariadb":
            acts.append(f"CONVERT PARTITION p1 TO TABLE {quoted(name)}")
        act = rng.choice(acts)
        if act.startswith("EXCHANGE"):
            catalogue.do(
                f"CREATE TABLE {quoted(name)} LIKE {table.quoted}", f"ALTER TABLE {quoted(name)} REMOVE PARTITIONING"
            )
        catalogue.do(*catalogue.changes(table.name, name), f"ALTER TABLE {table.quoted} {act}")
        catalogue.do(*catalogue.changes(table.name, name))
        if rng.random() < 0.5:
            catalogue.do(f"DROP TABLE {quoted(name)}")
