"""Tables whose changes also change other tables: through triggers, cascading foreign keys, or as views."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.resources import sql
from loader.source.server_facts import query

SIDE_EFFECT_PRIVILEGES = {"SELECT", "TRIGGER"}
"""Granted on `*.*`, they show which tables a statement may change besides the named ones."""


def read_side_effects(connection: Connection[Any]) -> tuple[str, ...] | None:
    """Return the names of these tables without their schemas, in lower case, sorted.

    None if the user may not see all of them. Triggers are visible only with the privilege TRIGGER, and views only with
    a privilege on them. So both privileges are needed on everything (see sql/source/grants.sql), without partial
    revokes.
    """
    granted = {str(privilege) for (privilege,) in query(connection, sql("source/privileges"))}
    partial = query(connection, "SHOW GLOBAL VARIABLES LIKE 'partial_revokes'")
    if not granted >= SIDE_EFFECT_PRIVILEGES or any(str(value) == "ON" for _, value in partial):
        return None
    return tuple(sorted({str(name).casefold() for (name,) in query(connection, sql("source/side_effects"))}))
