"""Tables are made, emptied and dropped."""

from __future__ import annotations

from tests.chaos.access.columns import quoted
from tests.chaos.access.modes import MODES
from tests.chaos.statements.catalogue import Catalogue
from tests.chaos.statements.schema import create_table, table_name
from tests.chaos.statements.transactions import Table, insert


def truncate(catalogue: Catalogue) -> None:
    for table in catalogue.some(1, kept=True):
        catalogue.do(*catalogue.changes(table.name), f"TRUNCATE TABLE {table.quoted}")
        catalogue.do(*catalogue.changes(table.name))


def drop_and_create(catalogue: Catalogue) -> None:
    for table in catalogue.some(1, kept=True):
        catalogue.do(*catalogue.changes(table.name), f"DROP TABLE {table.quoted}")
        for _ in range(3):  # the server may refuse the first one
            catalogue.do(create_table(catalogue.rng, catalogue.kind, table.name, keyed=table.name in MODES))
            if table.name in catalogue.session.tables():
                break
        _fill(catalogue, table.name)


def create(catalogue: Catalogue) -> None:
    if len(catalogue.names) > 14:
        return drop(catalogue)
    name = table_name(catalogue.rng, set(catalogue.names))
    catalogue.do(create_table(catalogue.rng, catalogue.kind, name))
    return _fill(catalogue, name)


def drop(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        catalogue.do(*catalogue.changes(table.name), f"DROP TABLE {table.quoted}")


def create_like(catalogue: Catalogue) -> None:
    if len(catalogue.names) > 14:
        return drop(catalogue)
    for table in catalogue.some(1):
        name = table_name(catalogue.rng, set(catalogue.names))
        catalogue.do(f"CREATE TABLE {quoted(name)} LIKE {table.quoted}")
        if catalogue.rng.random() < 0.6:
            copied = ", ".join(one.quoted for one in table.columns)
            catalogue.do(f"INSERT INTO {quoted(name)} ({copied}) SELECT {copied} FROM {table.quoted}")
        _fill(catalogue, name)
    return None


def create_select(catalogue: Catalogue) -> None:
    if len(catalogue.names) > 14:
        return drop(catalogue)
    for table in catalogue.some(1):
        name = table_name(catalogue.rng, set(catalogue.names))
        catalogue.do(f"CREATE TABLE {quoted(name)} AS SELECT * FROM {table.quoted}")
        catalogue.do(*catalogue.changes(name))
    return None


def _fill(catalogue: Catalogue, name: str) -> None:
    table = Table(catalogue.session, name)
    if table.columns:
        catalogue.do(insert(catalogue.rng, table), *catalogue.changes(name))


def drop_several(catalogue: Catalogue) -> None:
    """Drop two tables and one that there is not, then make one of them again."""
    found = catalogue.some(2)
    if len(catalogue.names) < 5 or not found:
        return
    catalogue.do(*catalogue.changes(*(one.name for one in found)))
    catalogue.do(f"DROP TABLE IF EXISTS {found[0].quoted}, no_such_table, {found[1].quoted}")
    catalogue.do(create_table(catalogue.rng, catalogue.kind, found[0].name))
    _fill(catalogue, found[0].name)


def create_over(catalogue: Catalogue) -> None:
    """Create a table that there is: nothing happens, or MariaDB replaces it."""
    for table in catalogue.some(1):
        made = create_table(catalogue.rng, catalogue.kind, table.name)
        words = ["CREATE TABLE IF NOT EXISTS"] + ["CREATE OR REPLACE TABLE"] * (catalogue.kind == "mariadb")
        catalogue.do(*catalogue.changes(table.name), made.replace("CREATE TABLE", catalogue.rng.choice(words), 1))
        _fill(catalogue, table.name)


def other_engine(catalogue: Catalogue) -> None:
    """Keep a table in an engine without transactions for some changes, one of them in a transaction that is undone."""
    rng = catalogue.rng
    engines = ["MyISAM"] + ["Aria", "Aria TRANSACTIONAL=1"] * (catalogue.kind == "mariadb")
    for table in catalogue.some(1):
        catalogue.do(*catalogue.changes(table.name), f"ALTER TABLE {table.quoted} ENGINE={rng.choice(engines)}")
        catalogue.do(*catalogue.changes(table.name))
        if rng.random() < 0.3:
            catalogue.do(
                "BEGIN", *catalogue.changes(table.name, *catalogue.names[:1]), rng.choice(["COMMIT", "ROLLBACK"])
            )
        if rng.random() < 0.7:
            catalogue.do(f"ALTER TABLE {table.quoted} ENGINE=InnoDB", *catalogue.changes(table.name))


def shadow(catalogue: Catalogue) -> None:
    """Use a temporary table by the name of another one, which nothing of it may touch."""
    for table in catalogue.some(1):
        before = catalogue.changes(table.name)
        statements = [
            f"INSERT INTO {table.quoted} VALUES (1), (2)",
            f"ALTER TABLE {table.quoted} ADD COLUMN more INT",
            f"DELETE FROM {table.quoted}",
            f"TRUNCATE TABLE {table.quoted}",
        ]
        if (
            catalogue.kind == "mysql"
        ):  # MariaDB logs this as if it were about the other table: its replicas go wrong, too
            statements.append(f"RENAME TABLE {table.quoted} TO renamed_shadow")
        some = [one for one in statements if catalogue.rng.random() < 0.4]
        catalogue.do(
            *before,
            f"CREATE TEMPORARY TABLE {table.quoted} (shadow INT)",
            *some,
            f"DROP TEMPORARY TABLE {table.quoted}",
        )
        catalogue.do("DROP TEMPORARY TABLE IF EXISTS renamed_shadow", *catalogue.changes(table.name))
