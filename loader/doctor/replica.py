"""Whether initial loads can read the replica that the configuration names."""

from __future__ import annotations

from loader.doctor.finding import Finding, ok, warning
from loader.initial_load.server.replica import check_complete, gtids_to_wait_for
from loader.source.server_facts import query, read_identity
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_NAME = "read_from"


def is_readable(source: ServerAddress, replica: ServerAddress) -> Finding:
    """Return what is known about a replica before a load.

    Raises:
        LoaderError: a server does not answer, has no GTIDs, or the replica leaves changes out.
    """
    with connected(source) as connection:
        gtids_to_wait_for(connection)
        identity = read_identity(connection)
    with connected(replica) as connection:
        check_complete(connection, identity)
        (read_only,) = query(connection, "SELECT @@global.read_only")[0]
    where = f"{replica.host}:{replica.port}"
    if not read_only:
        return warning(
            _NAME,
            f"initial loads read {where}, where anybody with a privilege can write rows that the source lacks",
            "SET GLOBAL read_only = ON there, and check tables after a load with: loader verify",
        )
    return ok(_NAME, f"initial loads read {where}")
