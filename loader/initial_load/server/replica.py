"""A replica that an initial load reads instead of its source: it must have all transactions up to the load's position.

The position is that of the source's log. A replica of the source never shows a transaction that is not yet in that log.
A server that follows the same server as the source can show one, so a load waits for the log before it ends. Then it
ends at the end of the log, as if the source had been read.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from pymysql.connections import Connection

from loader.errors import RetryableError, UsageError
from loader.initial_load.definition_check import check_unaltered, is_altered
from loader.initial_load.documents import LoadPlan
from loader.initial_load.server.commit_visibility import wait_for_xa
from loader.model.identity import Identity
from loader.source.continuity import check_identity, executed_gtids
from loader.source.server_facts import query, read_channels, read_identity
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_WAIT_SECONDS = 10
_LONGEST_SECONDS = 600
_LOG = logging.getLogger(__name__)


def gtids_to_wait_for(connection: Connection[Any]) -> str:
    """Return the GTIDs of all transactions that are visible on the source.

    Raises:
        UsageError: its transactions have no GTIDs.
    """
    gtids = executed_gtids(connection)
    modes = [str(value) for _, value in query(connection, "SHOW GLOBAL VARIABLES LIKE 'gtid\\_mode'")]  # of MySQL
    if not gtids or modes not in ([], ["ON"]):
        raise UsageError(
            "a replica cannot be read, because the transactions of the source have no GTIDs",
            hint="remove read_from of the source, or set gtid_mode=ON on both servers",
            key="read_from",
        )
    return gtids


def check_reader(connection: Connection[Any], plan: LoadPlan) -> None:
    """Check that a server can be read for a load: the source, or a replica that has all up to the load's position.

    Raises:
        AnotherServer: it is neither.
        UsageError: the replica leaves changes out.
        RetryableError: the replica does not catch up with the position.
    """
    if not plan.gtids or read_identity(connection).same_server(plan.identity):
        check_identity(connection, plan.identity)
        return
    check_complete(connection, plan.identity)
    behind = RetryableError(
        "the replica does not have the transactions of its source up to the position of the load",
        why=f"it lacks some of {plan.gtids}",
        hint="check the replication (SHOW REPLICA STATUS), or remove read_from of the source; then run again",
        table=plan.name,
        position=plan.position,
    )
    waiting = f"table {plan.name}: waiting for the replica to reach the position {plan.position}"
    _wait_for_gtids(connection, plan.gtids, waiting, behind)


def wait_for_reader(source: ServerAddress, reader: ServerAddress, plan: LoadPlan) -> None:
    """Return once a replica shows all up to a load's position, and the source's log has all that the replica shows.

    A replica of MariaDB that applies transactions in parallel reaches the GTID of an XA COMMIT before others see the
    rows (seen on 10.11).

    Raises:
        LoaderError: see wait_until_logged.
    """
    with connected(source) as asking, connected(reader) as connection:
        wait_until_logged(asking, connection, plan)
        wait_for_xa(connection)


def wait_until_logged(source: Connection[Any], reader: Connection[Any], plan: LoadPlan) -> None:
    """Return once the source's log has all transactions that the server that is read shows.

    On MySQL, both can follow the same server, and the source can lag. On MariaDB the replica follows the source.

    Raises:
        LoaderError: see check_reader; for example, the replica was promoted.
        RetryableError: the source does not get them.
    """
    check_reader(reader, plan)
    identity = read_identity(reader)
    if identity.kind == "mariadb" or identity.same_server(plan.identity):
        return
    gtids = _replicated_gtids(reader, identity)
    ahead = RetryableError(
        "the replica has transactions that the source does not have",
        why=f"the source lacks some of {gtids}",
        hint="if the source follows another server, check its replication (SHOW REPLICA STATUS); otherwise name another"
        " replica in read_from of the source, or remove read_from; then run again",
        table=plan.name,
    )
    waiting = f"table {plan.name}: waiting for the source to have the transactions of the replica"
    _wait_for_gtids(source, gtids, waiting, ahead)


def _replicated_gtids(connection: Connection[Any], identity: Identity) -> str:
    """Return the GTIDs of a MySQL server, without those of its own writes if it is a replica."""
    executed = "".join(executed_gtids(connection).split())
    if not read_channels(connection):
        return executed
    return ",".join(gtids for gtids in executed.split(",") if not gtids.startswith(identity.uuid))


def check_same_definition(source: Connection[Any], replica: Connection[Any], plan: LoadPlan) -> None:
    """Check that a replica, which has all up to the position, defines the table as the source does.

    Raises:
        RetryableError: the table was altered since the load was planned.
        UsageError: the definitions differ.
    """
    if is_altered(replica, plan):
        check_unaltered(source, plan)
        raise UsageError(
            "the replica has another definition of the table than the source",
            hint="compare SHOW CREATE TABLE of both servers, or remove read_from of the source",
            table=plan.name,
        )


def check_complete(connection: Connection[Any], source: Identity) -> None:
    """Check that a replica applies all changes of its source.

    MariaDB's variables have the filters of its default connection, and no ids of servers and domains. The GTIDs of
    MariaDB do not tell a server that follows another source, for example the one before a failover.

    Raises:
        UsageError: it has a filter, or follows another server.
        MySQLError: from the driver; also if the user may not see the filters.
    """
    settings = query(connection, "SHOW GLOBAL VARIABLES LIKE 'replicate\\_%'")
    channels = read_channels(connection)
    settings += [item for channel in channels for item in channel.items() if item[0].startswith("replicate_")]
    everything = {("replicate_events_marked_for_skip", "REPLICATE")}
    filters = {name: value for name, value in settings if value and (name, value) not in everything}
    filters.pop("replicate_annotate_row_events", None)
    if filters:
        raise UsageError(
            "the replica does not apply all changes of its source, so rows would be missing",
            why=", ".join(f"{name}={value}" for name, value in sorted(filters.items())),
            hint="name another replica in read_from of the source, or remove read_from",
            key="read_from",
        )
    sources = [channel["master_server_id"] for channel in channels if "master_server_id" in channel]
    if source.kind == "mariadb" and source.server_id not in map(int, sources):
        raise UsageError(
            "the replica does not replicate from the source directly, so it may have other transactions",
            why=f"the source is server {source.server_id}, and it follows {', '.join(map(str, sources)) or 'none'}",
            hint="name another replica in read_from of the source, or remove read_from",
            key="read_from",
        )


def _wait_for_gtids(connection: Connection[Any], gtids: str, waiting: str, missing: RetryableError) -> None:
    """Return once a server has the transactions. Log that it is waited for, and raise the error after ten minutes."""
    mariadb = read_identity(connection).kind == "mariadb"
    wait = "MASTER_GTID_WAIT" if mariadb else "WAIT_FOR_EXECUTED_GTID_SET"
    until = time.monotonic() + _LONGEST_SECONDS
    while not _has_gtids(connection, wait, gtids):
        if time.monotonic() > until:
            raise missing
        _LOG.info("%s", waiting)


def _has_gtids(connection: Connection[Any], wait: str, gtids: str) -> bool:
    """Return whether the server has the transactions. Wait some seconds for them."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {wait}(%s, %s)", (gtids, _WAIT_SECONDS))
        return bool(cursor.fetchall()[0][0] == 0)
