"""Reads CREATE TRIGGER statements of the log.

Sources: MySQL manual, "CREATE TRIGGER Statement"; MariaDB manual, "CREATE TRIGGER".
"""

from __future__ import annotations

from loader.model.table import TableName
from loader.schema.cursor import TokenCursor
from loader.schema.lexer import tokens
from loader.schema.statement_reader import inner_statement


def read_update_trigger(
    statement: str, database: str, sql_mode: int, mariadb: bool, *, folds: bool = False
) -> TableName | None:
    """Return the table on which a statement creates a BEFORE UPDATE trigger; None for other statements.

    Arguments: see `table_changes`.

    Raises:
        UnreadableError: the statement cannot be parsed.
    """
    if "TRIGGER" not in statement.upper():
        return None
    cursor = TokenCursor(inner_statement(tokens(statement, sql_mode, mariadb)), folds=folds)
    if not cursor.take("CREATE"):
        return None
    cursor.take("OR", "REPLACE")
    if cursor.take("DEFINER", "="):
        _skip_account(cursor)
    if not cursor.take("TRIGGER"):
        return None
    cursor.take("IF", "NOT", "EXISTS")
    cursor.table(database)
    if not cursor.take("BEFORE", "UPDATE"):
        return None
    cursor.need("ON")
    return cursor.table(database)


def _skip_account(cursor: TokenCursor) -> None:
    """Skip the name of a user or role, or CURRENT_USER()."""
    cursor.pop("word", "name", "string")
    if cursor.take("@"):
        cursor.pop("word", "name", "string")
    cursor.take("(", ")")
