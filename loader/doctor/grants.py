"""Check the privileges of the loader's user: missing ones and ones that it does not need.

Format: SHOW GRANTS of both servers. MariaDB prints BINLOG MONITOR for REPLICATION CLIENT. MySQL has roles, and
wildcards in names of schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from loader.doctor.finding import Finding, error, ok, warning
from loader.model.table import TableName
from loader.source.schemas import quote_name
from loader.source.server_facts import query
from loader.source.side_effects import SIDE_EFFECT_PRIVILEGES

_GRANT = re.compile(
    r"GRANT (?P<what>.+?) ON (?:TABLE )?(?P<schema>\*|`(?:[^`]|``)+`)\.(?P<table>\*|`(?:[^`]|``)+`) TO ", re.DOTALL
)
_ALL = "ALL PRIVILEGES"
_NEEDED = {
    "REPLICATION SLAVE": {"REPLICATION SLAVE", "REPLICATION REPLICA"},
    "REPLICATION CLIENT": {"REPLICATION CLIENT", "BINLOG MONITOR"},
}
_HARMLESS = {
    "USAGE",
    "SHOW DATABASES",
    "SHOW VIEW",
    "REPLICA MONITOR",
    "SLAVE MONITOR",
    "BINLOG ADMIN",
    *set().union(*_NEEDED.values()),
}
_SHOWN = 6


@dataclass(frozen=True)
class Grant:
    """Privileges on `*.*`, on a schema or on a table. Names are unquoted; `*` stands for all."""

    privileges: frozenset[str]
    schema: str
    table: str
    with_grant: bool

    def selects(self, name: TableName) -> bool:
        """Return whether the grant allows its user to read the whole table."""
        if not self.privileges & {"SELECT", _ALL}:
            return False
        if self.table != "*":
            return (self.schema, self.table) == (name.schema, name.table)
        return self.schema == "*" or _like(self.schema, name.schema)


def read_grants(connection: Connection[Any]) -> tuple[str, list[Grant]]:
    """Return the user of the connection, and the grants of the user and of its active roles."""
    user = str(query(connection, "SELECT CURRENT_USER()")[0][0])
    statement = "SHOW GRANTS"
    if "mariadb" not in connection.get_server_info().lower():
        roles = str(query(connection, "SELECT CURRENT_ROLE()")[0][0])
        statement += f" FOR CURRENT_USER() USING {roles}" if roles != "NONE" else ""
    return user, parse(str(row[0]) for row in query(connection, statement))


def parse(lines: Iterable[str]) -> list[Grant]:
    """Return the grants of privileges, without grants of roles and of PROXY."""
    grants = []
    for line in lines:
        grant = _GRANT.match(line)
        if grant and not line.startswith("GRANT PROXY"):
            privileges = frozenset(one.strip() for one in re.split(r",(?![^(]*\))", grant["what"]))
            with_grant = "WITH GRANT OPTION" in line[grant.end() :]
            grants.append(Grant(privileges, _name(grant["schema"]), _name(grant["table"]), with_grant))
    return grants


def missing(user: str, grants: Sequence[Grant], tables: Iterable[TableName]) -> Finding | list[Finding]:
    """Return errors for the privileges that the user lacks."""
    name, _, host = user.rpartition("@")
    account = "@".join("'" + part.replace("\\", "\\\\").replace("'", "''") + "'" for part in (name, host))
    cure = f"GRANT {{}} TO {account}; see sql/source/grants.sql"
    everywhere = {one for grant in grants if grant.schema == "*" for one in grant.privileges}
    found = [
        error("grants", f"{user} lacks {privilege}", cure.format(f"{privilege} ON *.*"))
        for privilege, spelled in _NEEDED.items()
        if not everywhere & (spelled | {_ALL})
    ]
    unread = [name for name in tables if not any(grant.selects(name) for grant in grants)]
    if unread:
        schemas = dict.fromkeys(f"SELECT ON {quote_name(name.schema)}.*" for name in unread)
        what = f"{user} cannot read {listed(map(str, unread))}"
        found.append(error("grants", what, "; ".join(cure.format(schema) for schema in schemas)))
    return found or ok("grants", f"{user} has all privileges that it needs")


def excess(user: str, grants: Sequence[Grant], *, triggers: bool) -> list[Finding]:
    """Return a warning for the privileges that the loader does not need.

    `triggers`: it needs TRIGGER on schemas or tables; see loader.source.update_triggers.
    """
    more = {
        one
        for grant in grants
        for one in grant.privileges
        if one.partition(" (")[0] not in {*_HARMLESS, *SIDE_EFFECT_PRIVILEGES}
    }
    more |= {"GRANT OPTION" for grant in grants if grant.with_grant}
    everywhere = {one for grant in grants if grant.schema == "*" for one in grant.privileges}
    if not everywhere >= SIDE_EFFECT_PRIVILEGES:
        more |= {"SELECT ON *.*"} if "SELECT" in everywhere else set()
        more |= {"TRIGGER" for one in grants if "TRIGGER" in one.privileges and (one.schema == "*" or not triggers)}
    if not more:
        return []
    return [
        warning(
            "grants",
            f"{user} has privileges that it does not need: {listed(sorted(more))}",
            f"REVOKE them from {user}, or create a user for the loader: see sql/source/grants.sql",
        )
    ]


def listed(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    all_names = list(names)
    more = len(all_names) - _SHOWN
    return ", ".join(all_names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _name(text: str) -> str:
    return text if text == "*" else text[1:-1].replace("``", "`")


def _like(pattern: str, name: str) -> bool:
    """Return whether a name matches the schema of a grant, where `%` and `_` are wildcards unless escaped."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(wild.get(one) or re.escape(one[-1]) for one in parts), name, re.DOTALL))
