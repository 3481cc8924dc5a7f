"""Logs that would take much more memory than they have bytes, if what they say were believed. Run as a program: the case.

It prints the peak of its memory before and after, in KiB, and what came of the log.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import zstandard

from loader.binlog.events.compressed_events import BLOCK
from tests.unit.binlog.builder import WRITE, LogBuilder, packed
from tests.unit.binlog.fields import Field, Table, blob, compressed_blob, integer, json, varchar
from tests.unit.binlog.reading import Staged, outcome

GIB = 1 << 30
TABLE = Table("s", "t", (integer("id"), varchar("v")))


def payload(stored: bytes, size: int, compression: int = 0) -> bytes:
    """A transaction that says of itself what it is told to say."""
    fields = b"".join(
        packed(k) + packed(len(packed(v))) + packed(v) for k, v in ((2, compression), (3, size), (1, len(stored)))
    )
    return transaction(fields + packed(0) + stored)


def transaction(body: bytes, kind: int = 40) -> bytes:
    """A log of one compressed event."""
    log = LogBuilder()
    log.gtid()
    log.event(kind, body)
    return bytes(log.data)


def zstd(piece: bytes, times: int) -> bytes:
    """The piece so often, compressed in frames."""
    return zstandard.compress(piece) * times


def inner(*events: tuple[int, bytes]) -> bytes:
    """Events as they stand in a payload."""
    log = LogBuilder(checksum=False)
    log.data.clear()
    log.query("BEGIN")
    for kind, body in events:
        log.event(kind, body, flags=0x80)
    return bytes(log.data)


def ignorable() -> tuple[bytes, int]:
    """A gibibyte of events that are passed over, and its size."""
    piece = inner((28, bytes(4000)))[len(inner()) :] * (BLOCK // 4019)
    times = GIB // len(piece)
    return zstd(inner(), 1) + zstd(piece, times) + zstd(inner_xid(), 1), len(inner()) + len(piece) * times + len(
        inner_xid()
    )


def inner_xid() -> bytes:
    log = LogBuilder(checksum=False)
    log.data.clear()
    log.xid()
    return bytes(log.data)


def row(field: Field, value: bytes) -> bytes:
    """A log with an insert whose value is these bytes, as they are."""
    table = Table(
        "s", "t", (Field(field.name, field.wire, field.metadata, lambda raw: raw, collation=field.collation),), key=()
    )
    return bytes(LogBuilder().insert(table, [value]).data)


def rows_event(body: bytes) -> bytes:
    log = LogBuilder().begin()
    log.table_map(TABLE)
    log.event(WRITE, (100).to_bytes(6, "little") + b"\1\0\2\0" + body)
    log.xid()
    return bytes(log.data)


def table_map(body: bytes) -> bytes:
    log = LogBuilder().begin()
    log.event(19, bytes(8) + body)
    return bytes(log.data)


def zipped(size: int) -> bytes:
    """A row event that MariaDB compressed, of a stated size."""
    head = (100).to_bytes(6, "little") + b"\1\0" + packed(2) + b"\xff"
    log = LogBuilder(server="11.4.2-MariaDB")
    log.mariadb_gtid()
    log.table_map(TABLE)
    count = (size.bit_length() + 7) // 8
    log.event(166, head + bytes([0x80 | count]) + size.to_bytes(count, "big") + zlib.compress(bytes(1 << 26)))
    log.xid()
    return bytes(log.data)


CASES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: bytes(LogBuilder().insert(TABLE, (1, "x")).data),
    "zeros of two gibibytes": lambda: payload(zstd(bytes(1 << 26), 32), 2 * GIB),
    "zeros of two gibibytes that say to be few": lambda: payload(zstd(bytes(1 << 26), 32), 5000),
    "zeros that say to be very many": lambda: payload(zstd(bytes(1 << 26), 32), (1 << 63) - 1),
    "an event that says to have three gibibytes": lambda: payload(
        zstandard.compress(inner() + struct.pack("<IBIIIH", 0, 30, 1, 3 * GIB, 0, 0) + bytes(100)), 3 * GIB
    ),
    "an event that ends after its payload": lambda: payload(
        zstandard.compress(inner() + struct.pack("<IBIIIH", 0, 30, 1, 3 * GIB, 0, 0) + bytes(100)), len(inner()) + 119
    ),
    "a payload in a payload": lambda: payload(zstandard.compress(inner((40, bytes(30)))), len(inner((40, bytes(30))))),
    "a window of a gibibyte": lambda: payload(wide(), 1 << 20),
    "a payload that says to have more than its event": lambda: transaction(packed(2) + b"\1\0" + packed(1) + b"\x09" + packed(1 << 62) + b"\0x"),
    "a zlib bomb that says to be small": lambda: zipped(5000),
    "a zlib bomb that says to be larger than an event": lambda: zipped(1 << 40),
    "more columns than there can be": lambda: rows_event(packed((1 << 63) - 1) + bytes(40)),
    "more columns than bytes": lambda: rows_event(packed(60_000) + bytes(40)),
    "a text that ends far behind its event": lambda: row(blob("b", 4), b"\xff\xff\xff\xff"),
    "a JSON of very many members": lambda: row(json(), (9).to_bytes(4, "little") + b"\3" + b"\xff\xff\xff\x7f" * 2),
    "a compressed value that says to be large": lambda: row(
        compressed_blob("c"), (40).to_bytes(4, "little") + b"\x8c\xff\xff\xff\xff" + bytes(35)
    ),
    "a table of very many columns": lambda: table_map(b"\1s\0\1t\0" + packed((1 << 63) - 1) + bytes(40)),
    "a table of labels without end": lambda: table_map(
        b"\1s\0\1t\0" + packed(1) + b"\xfe" + packed(2) + b"\xf7\1\0" + b"\4\2\1e\6" + packed(9) + packed(1 << 62) + bytes(8)
    ),
    "a log that is cut in an event of four gibibytes": lambda: bytes(LogBuilder().data)
    + struct.pack("<IBIIIH", 0, 30, 1, 0xFFFFFFFF, 0, 0),
}  # fmt: skip
FINE = {"a gibibyte of events that are passed over": lambda: payload(*ignorable())}


def wide() -> bytes:
    """A frame that asks for a window of a gibibyte."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=30, write_content_size=0)
    machine = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return machine.compress(bytes(1 << 20)) + machine.flush()


def peak() -> int:
    """The most memory that the process has had, in KiB; ru_maxrss would begin with that of the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def main() -> None:
    log = (CASES | FINE)[sys.argv[1]]()
    before = peak()
    found = outcome(log)
    after = peak()
    what = "staged" if isinstance(found, Staged) else f"{type(found).__name__} {found.exit_code} {found.what}"
    print(before, after, what, sep="\t")


if __name__ == "__main__":
    main()
