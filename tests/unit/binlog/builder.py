"""Builds binary logs event by event, as servers write them. Formats: MySQL internals, "Binary Log Event"."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, Self

from tests.unit.binlog.fields import Table

MAGIC = b"\xfebin"
SECONDS = 1_700_000_000
"""Timestamp of every event that is given none: 2023-11-14 22:13:20."""
MICROS = SECONDS * 1_000_000 + 123_456
"""Commit time of every GTID event that is given none."""
STATEMENT_END = 1

WRITE_V1, UPDATE_V1, DELETE_V1, WRITE, UPDATE, DELETE = 23, 24, 25, 30, 31, 32
_POST_HEADERS = bytes.fromhex("380d0008000000000400040000006200041a08000000080808020000000a0a0a2a2a001234000a280000")


class LogBuilder:
    """A log file that grows. `data` is the file so far; `events` are (offset, size, type) of each event.

    `server_id` is that of the events to come.
    """

    def __init__(self, *, server: str = "8.4.0", checksum: bool = True, in_use: bool = False) -> None:
        self.checksum = checksum
        self.data = bytearray(MAGIC)
        self.events: list[tuple[int, int, int]] = []
        self.number = 0  # of the last GTID
        self.server_id = 1
        self._format(server, in_use)

    @property
    def end(self) -> int:
        """Where the next event will stand."""
        return len(self.data)

    def event(self, kind: int, body: bytes, *, flags: int = 0, seconds: int = SECONDS) -> int:
        """Append any event; its offset."""
        at = self.end
        size = 19 + len(body) + (4 if self.checksum else 0)
        event = struct.pack("<IBIIIH", seconds, kind, self.server_id, size, (at + size) & 0xFFFFFFFF, flags) + body
        if self.checksum:
            event += zlib.crc32(event).to_bytes(4, "little")
        self.data += event
        self.events.append((at, size, kind))
        return at

    def gtid(self, number: int = 0, *, micros: int = MICROS, seconds: int = SECONDS, kind: int = 33) -> int:
        """GTID (33) or ANONYMOUS_GTID (34), the next one by default; `micros` 0 leaves the commit times out (5.7)."""
        number = number or self.number + 1
        self.number = number
        body = b"\1" + bytes(range(16)) + struct.pack("<QBQQ", number, 2, number - 1, number)
        return self.event(kind, body + (micros.to_bytes(7, "little") + b"\0" if micros else b""), seconds=seconds)

    def mariadb_gtid(self, number: int = 1, *, single: bool = False) -> int:
        """MariaDB's GTID event; `single`: one statement follows, without BEGIN."""
        return self.event(162, struct.pack("<QIB6x", number, 0, 1 if single else 0))

    def query(
        self,
        text: str | bytes,
        database: str = "",
        *,
        seconds: int = SECONDS,
        variables: bytes = b"\0" + bytes(4),
        error: int = 0,
    ) -> int:
        """A statement with its status variables and its error code."""
        raw = text if isinstance(text, bytes) else text.encode()
        head = struct.pack("<IIBHH", 1, 0, len(database.encode()), error, len(variables))
        return self.event(2, head + variables + database.encode() + b"\0" + raw, seconds=seconds)

    def table_map(self, table: Table, table_id: int = 100, **metadata: Any) -> int:
        """A TABLE_MAP; `metadata` as in Table.body."""
        return self.event(19, table.body(table_id, **metadata))

    def rows(
        self,
        kind: int,
        table: Table,
        images: Sequence[bytes],
        *,
        table_id: int = 100,
        last: bool = True,
        extra: bytes = b"",
        present: bytes | None = None,
    ) -> int:
        """A row event (before and after images in turn for an update); `present`: bitmaps of their columns."""
        count = len(table.fields)
        full = bytes([0xFF] * ((count + 7) // 8))
        head = table_id.to_bytes(6, "little") + (STATEMENT_END if last else 0).to_bytes(2, "little")
        if kind >= WRITE:
            head += (2 + len(extra)).to_bytes(2, "little") + extra
        bitmaps = present or (full * 2 if kind in (UPDATE, UPDATE_V1) else full)
        return self.event(kind, head + packed(count) + bitmaps + b"".join(images))

    def write(self, table: Table, *rows: Sequence[Any], kind: int = WRITE, **how: Any) -> int:
        """An insert of rows."""
        return self.rows(kind, table, [table.image(row) for row in rows], **how)

    def delete(self, table: Table, *rows: Sequence[Any], kind: int = DELETE, **how: Any) -> int:
        """A delete of rows."""
        return self.rows(kind, table, [table.image(row) for row in rows], **how)

    def update(self, table: Table, *pairs: tuple[Sequence[Any], Sequence[Any]], kind: int = UPDATE, **how: Any) -> int:
        """An update of (before, after) pairs."""
        return self.rows(kind, table, [table.image(row) for pair in pairs for row in pair], **how)

    def xid(self, number: int = 7, *, seconds: int = SECONDS) -> int:
        """The commit of a transaction."""
        return self.event(16, number.to_bytes(8, "little"), seconds=seconds)

    def xa_prepare(self, xid: str = "61", *, one_phase: bool = False) -> int:
        """The end of the first phase of an XA transaction (hex of its identifier), or of all of it."""
        raw = bytes.fromhex(xid)
        return self.event(38, struct.pack("<BIII", one_phase, 1, len(raw), 0) + raw)

    def prepared(self, table: Table, *rows: Sequence[Any], xid: str = "61", one_phase: bool = False) -> Self:
        """An XA transaction that inserts rows, up to its XA PREPARE."""
        self.gtid()
        self.query(f"XA START X'{xid}',X'',1")
        self.table_map(table)
        self.write(table, *rows)
        self.query(f"XA END X'{xid}',X'',1")
        self.xa_prepare(xid, one_phase=one_phase)
        return self

    def decided(self, outcome: str = "COMMIT", xid: str = "61", *, micros: int = MICROS) -> Self:
        """XA COMMIT or XA ROLLBACK."""
        self.gtid(micros=micros)
        self.query(f"XA {outcome} X'{xid}',X'',1")
        return self

    def rotate(self, file: str = "binlog.000002") -> int:
        """The end of the file, and the next one's name."""
        return self.event(4, (4).to_bytes(8, "little") + file.encode())

    def stop(self) -> int:
        """The end of the file at a shutdown."""
        return self.event(3, b"")

    def begin(self, number: int = 0, **how: Any) -> Self:
        """GTID and BEGIN."""
        self.gtid(number, **how)
        self.query("BEGIN")
        return self

    def insert(self, table: Table, *rows: Sequence[Any], number: int = 0) -> Self:
        """A whole transaction that inserts rows."""
        self.begin(number)
        self.table_map(table)
        self.write(table, *rows)
        self.xid()
        return self

    def _format(self, server: str, in_use: bool) -> None:
        fixed = struct.pack("<H50sIB", 4, server.encode(), SECONDS, 19) + _POST_HEADERS
        # Every server since 5.6.1 ends this event with an algorithm and four bytes, whatever the algorithm.
        body = fixed + bytes([1 if self.checksum else 0])
        at, size = self.end, 19 + len(body) + 4
        event = struct.pack("<IBIIIH", SECONDS, 15, 1, size, at + size, 0) + body
        event += zlib.crc32(event).to_bytes(4, "little")
        if in_use:  # set after the sum was made
            event = event[:17] + b"\1" + event[18:]
        self.data += event
        self.events.append((at, size, 15))


def packed(number: int) -> bytes:
    """The protocol's length-encoded integer."""
    if number < 251:
        return bytes([number])
    for first, size in ((252, 2), (253, 3), (254, 8)):
        if number < 1 << (8 * size):
            return bytes([first]) + number.to_bytes(size, "little")
    raise OverflowError(number)


def resealed(log: bytes | bytearray, event: tuple[int, int, int]) -> bytes:
    """The log with the checksum of that event made right again."""
    at, size, _ = event
    end = at + size - 4
    return bytes(log[:end]) + zlib.crc32(bytes(log[at:end])).to_bytes(4, "little") + bytes(log[at + size :])
