"""Binary result sets as a server would send them."""

from __future__ import annotations

import struct

import numpy as np

from loader.binlog.values.codepoints import Codes
from loader.initial_load.result_set import kernel as k
from loader.initial_load.result_set import program as p

LONGEST = 2**24 - 1


def packed(value: bytes) -> bytes:
    """A string with its length before it."""
    size = len(value)
    if size < 251:
        return bytes([size]) + value
    if size < 2**16:
        return b"\xfc" + struct.pack("<H", size) + value
    if size < 2**24:
        return b"\xfd" + struct.pack("<I", size)[:3] + value
    return b"\xfe" + struct.pack("<Q", size) + value


def row(*values: bytes | None) -> bytes:
    """The payload of a row; values as they stand in it, strings with their lengths."""
    bits = sum(1 << (i + 2) for i, value in enumerate(values) if value is None)
    nulls = bits.to_bytes((len(values) + 9) // 8, "little")
    return b"\0" + nulls + b"".join(value for value in values if value is not None)


def packet(payload: bytes) -> bytes:
    """The payload in as many packets as it needs."""
    made = b""
    while True:
        piece, payload = payload[:LONGEST], payload[LONGEST:]
        made += struct.pack("<I", len(piece))[:3] + b"\7" + piece
        if len(piece) < LONGEST:
            return made


END = packet(b"\xfe\0\0\2\0")

COLUMNS = np.array(
    [
        (p.INT, 4), (p.UINT, 8), (p.FLOAT, 4), (p.DOUBLE, 8), (p.YEAR, 2), (p.TEXT, 0), (p.DECIMAL, 0), (p.HEX, 0),
        (p.DATE, 0), (p.DATETIME, 3), (p.TIME, 6), (p.BIT, 0),
    ],
    np.int64,
)  # fmt: skip

ROWS = [
    (
        row(
            struct.pack("<i", -5), struct.pack("<Q", 2**64 - 1), struct.pack("<f", 0.1), struct.pack("<d", -0.0),
            struct.pack("<H", 0), packed(b'a"\\\n\r\0'), packed(b"-000.50"), packed(b"\0\xff"),
            packed(struct.pack("<HBB", 2024, 0, 15)), packed(struct.pack("<HBBBBBI", 1, 2, 3, 4, 5, 6, 120000)),
            packed(struct.pack("<BIBBBI", 1, 34, 22, 59, 59, 7)), packed(b"\x01\x00"),
        ),
        b'-5,18446744073709551615,0.1,-0,0000,"a""\\\\\\n\\r\\0",-0.50,"00ff",2024-00-15,0001-02-03 04:05:06.120,'
        b"-838:59:59.000007,256\n",
    ),
    (row(*[None] * 12), b",".join([b"\\N"] * 12) + b"\n"),
    (
        row(
            struct.pack("<i", 0), struct.pack("<Q", 0), struct.pack("<f", 1e10), struct.pack("<d", 1e22),
            struct.pack("<H", 2155), packed("ü😀".encode()), packed(b"0"), packed(b""), packed(b""), packed(b""),
            packed(b""), packed(b""),
        ),
        '0,0,10000000000,1e22,2155,"ü😀",0,"",0000-00-00,0000-00-00 00:00:00.000,00:00:00.000000,0\n'.encode(),
    ),
    (
        row(None, None, None, None, None, packed(b"x" * 70000), None, packed(b"\xab" * 300), None,
            packed(struct.pack("<HBB", 2024, 1, 2)), packed(struct.pack("<BIBBB", 0, 0, 1, 2, 3)), None),
        b'\\N,\\N,\\N,\\N,\\N,"' + b"x" * 70000 + b'",\\N,"' + b"ab" * 300
        + b'",\\N,2024-01-02 00:00:00.000,01:02:03.000000,\\N\n',
    ),
]  # fmt: skip


TABLES = np.zeros(1, np.uint16)


def stage(
    data: bytes, columns: k.Ints = COLUMNS, head: bytes = b"", room: int = 1 << 20, tables: Codes = TABLES
) -> tuple[int, bytes, k.Ints]:
    """What the kernel makes of a block: status, lines, state."""
    out, state = np.empty(room, np.uint8), np.zeros(4, np.int64)
    block = np.frombuffer(data or b"\0", np.uint8).copy()
    whole = np.zeros((len(columns), 5), np.int64)
    whole[:, : columns.shape[1]] = columns
    status = k.stage_result(
        block, len(data), np.frombuffer(head or b"\0", np.uint8)[: len(head)].copy(), whole, tables, out, state
    )
    return status, out[: state[k.OUT]].tobytes(), state
