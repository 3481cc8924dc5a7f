"""Checking that a table still has the definition that its load was planned for.

The condition that reads a chunk is only valid for the key as it was: its columns, collations, labels and order.
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
from loader.source.schemas import quote_table
from loader.source.server_facts import query


def is_altered(connection: Connection[Any], plan: LoadPlan) -> bool:
    """Return whether the table was altered since the load was planned."""
    return definition_digest(connection, plan.name) != plan.digest


def check_unaltered(connection: Connection[Any], plan: LoadPlan) -> None:
    """Check that the table was not altered since the load was planned.

    Raises:
        RetryableError: it was altered.
    """
    if is_altered(connection, plan):
        raise altered_error(plan.name)


def altered_error(table: TableName) -> RetryableError:
    """Return the error of a load whose table was altered during the load."""
    return RetryableError(
        "the table was altered during its initial load",
        why="chunks read before and after the change do not fit together: a row could be in two chunks, or in none",
        hint="run again: the load of the table starts over",
        table=table,
    )


@contextmanager
def definition_locked(connection: Connection[Any], plan: LoadPlan) -> Iterator[None]:
    """Prevent changes of the table's definition inside the block, after checking it.

    A transaction that read a table holds a shared metadata lock on it until it ends (MySQL manual, "Metadata Locking").

    Raises:
        RetryableError: the table was altered since the load was planned.
    """
    query(connection, "START TRANSACTION")
    lock_definition(connection, plan.name)
    check_unaltered(connection, plan)
    yield
    query(connection, "ROLLBACK")  # not after an error: the connection may be inside a result, and is closed


def lock_definition(connection: Connection[Any], table: TableName) -> None:
    """Prevent changes of the table's definition until the end of the connection's transaction."""
    query(connection, f"SELECT 1 FROM {quote_table(table)} LIMIT 1")
