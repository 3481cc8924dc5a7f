"""Tables of a server that change others when they are changed: by triggers, cascading foreign keys, or as views."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from loader.resources import sql
from loader.source.server_facts import query

_NEEDED = {"SELECT", "TRIGGER"}


def read_side_effects(connection: Connection[Any]) -> tuple[str, ...] | None:
    """The names of these tables, without their schemas, in lower case and in order.

    None where the user may not see all of them: triggers are shown only with the privilege TRIGGER, views only with one
    on them. Privileges on everything are needed (see sql/source/grants.sql), and none may be revoked in part.
    """
    granted = {str(privilege) for (privilege,) in query(connection, sql("source/privileges"))}
    partial = query(connection, "SHOW GLOBAL VARIABLES LIKE 'partial_revokes'")
    if not granted >= _NEEDED or any(str(value) == "ON" for _, value in partial):
        return None
    return tuple(sorted({str(name).casefold() for (name,) in query(connection, sql("source/side_effects"))}))
