"""Cuts the row events of a log into fragments, as MariaDB 12.3 writes them.

Format: its `log_event_server.cc`, "Rows_log_event_fragmenter": the row event without checksum, in whose header the
length counts one and the end position is 0; number of fragments, number of this one, flags, size on the first.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

from loader.binlog.format import HEAD_BYTES, read_format
from tests.unit.binlog.reading import Staged

ROWS = {23, 24, 25, 30, 31, 32, 166, 167, 168, 169, 170, 171}
Sizes = Callable[[bytes], Sequence[int]]


def events(log: bytes) -> Iterator[bytes]:
    """The events of a log with their checksums."""
    at = 4
    while at < len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        yield log[at : at + size]
        at += size


def bodies(event: bytes, sizes: Sequence[int], checksum: int = 4) -> list[bytes]:
    """The bodies of the fragments of a row event, given without checksum, with so many bytes of it each."""
    assert sum(sizes) == len(event)
    length = struct.pack("<I", len(event) + checksum)
    whole = event[:9] + length + bytes(4) + event[17:]
    found, at = [], 0
    for number, size in enumerate(sizes, 1):
        head = struct.pack("<IIB", len(sizes), number, number == 1)
        found.append(head + (struct.pack("<Q", len(event)) if number == 1 else b"") + whole[at : at + size])
        at += size
    return found


def written(log: bytes, made: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The first event of that log and behind it events of these headers and bodies; lengths and checksums are made."""
    checksum = read_format(log[:HEAD_BYTES], "made").checksum
    found = bytearray(log[: 4 + int.from_bytes(log[13:17], "little")])
    for header, body in made:
        size = 19 + len(body) + checksum
        event = header[:9] + struct.pack("<II", size, (len(found) + size) & 0xFFFFFFFF) + header[17:19] + body
        found += event + (zlib.crc32(event).to_bytes(4, "little") if checksum else b"")
    return bytes(found)


def parts_of(log: bytes, sizes: Sizes) -> list[tuple[bytes, bytes]]:
    """The events of a log behind its first, as headers and bodies, row events in fragments of these sizes, if any."""
    checksum = read_format(log[:HEAD_BYTES], "cut").checksum
    found = []
    for event in list(events(log))[1:]:
        plain = event[: len(event) - checksum]
        cuts = sizes(plain) if event[4] in ROWS else ()
        if cuts:
            header = plain[:4] + bytes([172]) + plain[5:19]
            found += [(header, body) for body in bodies(plain, cuts, checksum)]
        else:
            found.append((plain[:19], plain[19:]))
    return found


def fragmented(log: bytes, sizes: Sizes) -> bytes:
    """A log whose row events are in fragments."""
    return written(log, parts_of(log, sizes))


def of(count: int) -> Sizes:
    """Fragments so many, of about the same size."""

    def sizes(event: bytes) -> list[int]:
        number = min(count, len(event))
        return [len(event) * (n + 1) // number - len(event) * n // number for n in range(number)]

    return sizes


def of_bytes(most: int) -> Sizes:
    """Fragments of so many bytes, but for the last."""
    return lambda event: [min(most, len(event) - at) for at in range(0, len(event), most)]


def without_seqno(found: Staged) -> dict[str, bytes]:
    """Staged lines by table; the seqno, which is a place in the log, is cut out. Row offsets stay."""
    return {
        str(schema.name): b"\n".join(b",".join(line.split(b",", 2)[::2]) for line in text.split(b"\n"))
        for schema, text in found.text.items()
    }
