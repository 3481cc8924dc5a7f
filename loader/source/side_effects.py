"""Tables whose changes also change other tables: through triggers, cascading foreign keys, or as views."""

from __future__ import annotations

from typing import Any, NamedTuple

from pymysql.connections import Connection

from loader.resources import sql
from loader.source.server_facts import query

SIDE_EFFECT_PRIVILEGES = {"SELECT", "TRIGGER"}
"""Granted on `*.*`, they show which tables a statement may change besides the named ones."""


class SideEffects(NamedTuple):
    """Names of tables without their schemas, in lower case, sorted.

    Attributes:
        named: views, and tables of the rows of other tables. A statement that only reads them may change others.
        written: tables with triggers, and those whose foreign keys cascade. Only a statement that writes to them may.
    """

    named: tuple[str, ...]
    written: tuple[str, ...]


def read_side_effects(connection: Connection[Any]) -> SideEffects | None:
    """Return all of these tables.

    None if the user may not see all of them. Triggers are visible only with the privilege TRIGGER, and views only with
    a privilege on them. So both privileges are needed on everything (see sql/source/grants.sql), without partial
    revokes.
    """
    granted = {str(privilege) for (privilege,) in query(connection, sql("source/privileges"))}
    partial = query(connection, "SHOW GLOBAL VARIABLES LIKE 'partial_revokes'")
    if not granted >= SIDE_EFFECT_PRIVILEGES or any(str(value) == "ON" for _, value in partial):
        return None
    found = [(str(name).casefold(), bool(read)) for name, read in query(connection, sql("source/side_effects"))]
    named, written = (tuple(sorted({name for name, read in found if read is kind})) for kind in (True, False))
    return SideEffects(named, written)
