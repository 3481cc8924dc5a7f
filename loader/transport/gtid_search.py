"""Find the position of the first transaction outside a GTID set, by the start of a dump.

Formats: MySQL's protocol, "COM_BINLOG_DUMP_GTID", with the set as sources and half-open ranges; MariaDB's handshake by
`@slave_connect_state`. Both servers then send the first transaction that the set lacks. Its GTID event has its end.

A MariaDB set names only the newest transaction of each domain. Without `@slave_gtid_strict_mode`, the server also
starts behind a hole in its log. With it, the server refuses (MariaDB manual, "gtid_strict_mode"), but only when it
reaches the hole. It can send another domain before. So the search goes on until each domain that goes on was sent.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

from pymysql.connections import Connection
from pymysql.err import OperationalError

from loader.binlog.constants import HEADER, MAGIC, ROTATE
from loader.errors import BinlogFormatError
from loader.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from loader.model.position import Position
from loader.transport.base import NoPlace, ServerCannotTell
from loader.transport.dump import (
    ANONYMOUS,
    HEARTBEAT_SECONDS,
    LOG_ERROR,
    Events,
    command,
    event_size,
    gtid_command,
    prepare,
)
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected, log_sizes

_MARIADB_GTID = 162
_GTIDS = (33, 34, 42, _MARIADB_GTID)
_DOMAIN = slice(HEADER + 8, HEADER + 12)  # after the sequence number
_BEYOND = 2**32  # from here on the 32-bit end of an event does not give its offset
_NOT_ON = "cannot start in AUTO_POSITION mode"  # the text of MySQL with LOG_ERROR while gtid_mode is not ON
_SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS


def first_outside(address: ServerAddress, gtids: GtidSet) -> Position | None:
    """Return the position of the first transaction that is not in the set; None if there is none.

    Raises:
        ServerCannotTell: the server gave no position, for example because its log lacks transactions.
        SourceUnavailable: the server did not answer.
        AccessDenied: the server refused the user.
    """
    with connected(address, _SILENCE_SECONDS) as connection:
        sizes, behind = log_sizes(connection), _continued_domains(connection, gtids)
        prepare(connection)
        _ask(connection, gtids)
        try:
            found = _first(Events(connection, several=True), behind)
        except OperationalError as error:
            if error.args[0] != LOG_ERROR:
                raise
            why = str(error.args[1])
            if _NOT_ON in why or ANONYMOUS in why:
                raise NoPlace("GTIDs are not on for all transactions of the server", why=why, source=address) from error
            raise ServerCannotTell("the server refuses the GTID set", why=why, source=address) from error
    if isinstance(gtids, MariadbGtidSet) and behind:
        unseen = ", ".join(str(gtids.newest[domain]) for domain in sorted(behind))
        raise ServerCannotTell("the server does not have the GTID set", why=f"its log lacks {unseen}", source=address)
    if found is None:
        return None
    file, begin = found
    if begin < len(MAGIC) or sizes.get(file, 0) >= _BEYOND:
        raise NoPlace("the position of the first transaction outside a GTID set is unknown", source=address, file=file)
    return Position.at(file, begin)


def _continued_domains(connection: Connection[Any], gtids: GtidSet) -> set[int]:
    """Return the MariaDB domains of the set in which the server's last transaction is not the one of the set."""
    if not isinstance(gtids, MariadbGtidSet):
        return set()
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@global.gtid_binlog_pos")
        last = str(cursor.fetchall()[0][0]).split(",")
    return {domain for domain, gtid in gtids.newest.items() if str(gtid) not in last}


def _ask(connection: Connection[Any], gtids: GtidSet) -> None:
    if isinstance(gtids, MariadbGtidSet):
        with connection.cursor() as cursor:
            cursor.execute("SET @slave_connect_state = %s, @slave_gtid_strict_mode = 1", (str(gtids),))
        command(connection, "", len(MAGIC))
        return
    data = _encoded(gtids)
    gtid_command(connection, "", len(MAGIC), struct.pack("<I", len(data)) + data)


def _encoded(gtids: MysqlGtidSet) -> bytes:
    if any(":" in source for source in gtids.ranges):
        raise NoPlace("the server cannot search for a set with tagged GTIDs")
    found = struct.pack("<Q", len(gtids.ranges))
    for source, ranges in sorted(gtids.ranges.items()):
        found += bytes.fromhex(source.replace("-", "")) + struct.pack("<Q", len(ranges))
        found += b"".join(struct.pack("<QQ", first, last + 1) for first, last in ranges)
    return found


def _first(events: Events, behind: set[int]) -> tuple[str, int] | None:
    """Return file and start of the first transaction that is sent; None at the end of the log.

    It reads on until the server has sent a transaction of each domain in `behind`, and removes these domains from it.
    """
    found, file = None, ""
    for event in _events(events):
        kind = event[4]
        if kind == ROTATE:
            file = _next_file(event)
        elif kind in _GTIDS:
            found = found or (file, int.from_bytes(event[13:17], "little") - len(event))
            if kind == _MARIADB_GTID:
                behind.discard(int.from_bytes(event[_DOMAIN], "little"))
            if not behind:
                return found
    return found


def _events(events: Events) -> Iterator[bytes]:
    """Yield the events that name files and transactions. Others may be large, so their bytes are not kept."""
    data, ignored = b"", 0
    while piece := events.read():
        data, at, ignored = data + piece[ignored:], 0, max(0, ignored - len(piece))
        while at + HEADER <= len(data):
            kind, end = data[at + 4], at + event_size(data[at : at + HEADER])
            wanted = kind == ROTATE or kind in _GTIDS
            if wanted and end > len(data):
                break
            if wanted:
                yield data[at:end]
            at = end
        ignored += max(0, at - len(data))
        data = data[at:]


def _next_file(event: bytes) -> str:
    """Return the file that a ROTATE names. Some ROTATE events have a checksum, as the session requested."""
    summed = zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little")
    name = event[HEADER + 8 : -4 if summed else None]
    try:
        if name:
            return name.decode()
    except UnicodeDecodeError:
        pass
    raise BinlogFormatError("the server sent a ROTATE event that names no file", why=f"the name is {name!r}")
