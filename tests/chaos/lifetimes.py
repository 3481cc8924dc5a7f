"""Tables are made, emptied and dropped."""

from __future__ import annotations

from tests.chaos.catalogue import Catalogue
from tests.chaos.schema import create_table, table_name
from tests.chaos.values import quoted
from tests.chaos.workload import Table, insert


def truncate(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        catalogue.do(*catalogue.changes(table.name), f"TRUNCATE TABLE {table.quoted}")
        catalogue.do(*catalogue.changes(table.name))


def drop_and_create(catalogue: Catalogue) -> None:
    for table in catalogue.some(1):
        catalogue.do(*catalogue.changes(table.name), f"DROP TABLE {table.quoted}")
        catalogue.do(create_table(catalogue.rng, catalogue.kind, table.name))
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
