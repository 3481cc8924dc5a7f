"""Making sure that a table has the definition that its load was planned for.

The condition that reads a chunk is only right for the key as it was: its columns, collations, labels and order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymysql.connections import Connection

from loader.errors import RetryableError
from loader.initial_load.documents import LoadPlan
from loader.model.table import TableName
from loader.source.digest import definition_digest
from loader.source.schemas import quote_name
from loader.source.server_facts import query


def is_altered(connection: Connection[Any], plan: LoadPlan) -> bool:
    """Return whether the table was altered since the load was planned."""
    return definition_digest(connection, plan.name) != plan.digest


def check_unaltered(connection: Connection[Any], plan: LoadPlan) -> None:
    """Raise RetryableError if the table was altered since the load was planned."""
    if is_altered(connection, plan):
        raise altered_error(plan.name)


def altered_error(table: TableName) -> RetryableError:
    """Return the error of a load whose table was altered meanwhile."""
    return RetryableError(
        "the table was altered while it was loaded",
        why="chunks that are read before and after it do not fit together: rows could be in two of them, or in none",
        hint="run again: the load begins anew",
        table=table,
    )


@contextmanager
def definition_locked(connection: Connection[Any], plan: LoadPlan) -> Iterator[None]:
    """Keep everybody from altering the table inside the block, if it still is as planned.

    A transaction that read a table holds a shared metadata lock on it to its end (MySQL manual, "Metadata Locking").

    Raises:
        RetryableError: the table was altered since the load was planned.
    """
    query(connection, "START TRANSACTION")
    lock_definition(connection, plan.name)
    check_unaltered(connection, plan)
    yield
    query(connection, "ROLLBACK")  # after an error the connection may be inside a result, and is closed


def lock_definition(connection: Connection[Any], table: TableName) -> None:
    """Let nobody alter the table until the end of the connection's transaction."""
    query(connection, f"SELECT 1 FROM {quote_name(table.schema)}.{quote_name(table.table)} LIMIT 1")
