"""Find the position of the first transaction outside a GTID set, by the start of a dump.

Formats: MySQL's protocol, "COM_BINLOG_DUMP_GTID", with the set as sources and half-open ranges; MariaDB's handshake by
`@slave_connect_state`. Both servers then send the first transaction that the set lacks. Its GTID event has its end.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from pymysql.connections import Connection
from pymysql.err import OperationalError

from loader.binlog.constants import HEADER, MAGIC, ROTATE
from loader.errors import BinlogFormatError
from loader.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from loader.model.position import Position
from loader.transport.base import NoPlace, ServerCannotTell
from loader.transport.dump import HEARTBEAT_SECONDS, LOG_ERROR, Events, command, event_size, gtid_command, prepare
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected, log_sizes

_GTIDS = (33, 34, 42, 162)
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
        sizes = log_sizes(connection)
        prepare(connection)
        _ask(connection, gtids)
        try:
            found = _first(Events(connection, several=True))
        except OperationalError as error:
            if error.args[0] != LOG_ERROR:
                raise
            why = str(error.args[1])
            if _NOT_ON in why:
                raise NoPlace("GTIDs are not on for all transactions of the server", why=why, source=address) from error
            raise ServerCannotTell("the server refuses the GTID set", why=why, source=address) from error
    if found is None:
        return None
    file, begin = found
    if begin < len(MAGIC) or sizes.get(file, 0) >= _BEYOND:
        raise NoPlace("the position of the first transaction outside a GTID set is unknown", source=address, file=file)
    return Position.at(file, begin)


def _ask(connection: Connection[Any], gtids: GtidSet) -> None:
    if isinstance(gtids, MariadbGtidSet):
        with connection.cursor() as cursor:
            cursor.execute("SET @slave_connect_state = %s, @slave_gtid_strict_mode = 0", (str(gtids),))
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


def _first(events: Events) -> tuple[str, int] | None:
    """Return file and start of the first transaction that is sent; None at the end of the log."""
    file, data = "", b""
    while piece := events.read():
        data += piece
        while len(data) >= HEADER:
            kind, size = data[4], event_size(data[:HEADER])
            if kind in _GTIDS:
                return file, int.from_bytes(data[13:17], "little") - size
            if size > len(data):
                break
            if kind == ROTATE:
                file = _next_file(data[:size])
            data = data[size:]
    return None


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
