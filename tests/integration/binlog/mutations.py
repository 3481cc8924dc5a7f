"""Damaged logs with valid checksums, and the number of rows that mysqlbinlog, the server's decoder, shows for them."""

from __future__ import annotations

import subprocess
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.unit.binlog.reading import Staged

Event = tuple[int, int]
"""Where an event stands, and its size."""

_HEADS = {"### INSERT INTO": "I", "### UPDATE": "U", "### DELETE FROM": "D"}
_INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0xFB, 0xFC, 0xFD, 0xFE, 40, 19, 30)


def events_of(log: bytes) -> list[Event]:
    """The events of a log, by their headers; up to the first that cannot be one."""
    found, at = [], 4
    while at + 19 <= len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        if size < 19 or at + size > len(log):
            break
        found.append((at, size))
        at += size
    return found


def summed(log: bytearray, events: Sequence[Event]) -> bytes:
    """The log with the checksums of its events made right."""
    for at, size in events:
        log[at + size - 4 : at + size] = zlib.crc32(log[at : at + size - 4]).to_bytes(4, "little")
    return bytes(log)


def mutated(log: bytes, random: Random) -> bytes:
    """The log with some bytes changed, taken out or put in, or events left out, doubled or in another order."""
    parts = [bytearray(log[at : at + size]) for at, size in events_of(log)]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        number = random.randrange(len(parts))
        part = parts[number]
        how = random.randrange(10)
        place = random.randrange(len(part) - 4)
        if how < 4:
            part[place] ^= 1 << random.randrange(8)
        elif how < 7:
            part[place] = random.choice(_INTERESTING)
        elif how == 7 and len(part) > 24:
            part[19 + random.randrange(len(part) - 23) :][:1] = b""
            del part[random.randrange(19, len(part) - 4)]
            part[9:13] = len(part).to_bytes(4, "little")
        elif how == 8:
            part[place:place] = random.randbytes(random.randint(1, 4)) if place >= 19 else b""
            part[9:13] = len(part).to_bytes(4, "little")
        else:
            other = random.randrange(1, len(parts))
            parts.insert(random.randrange(1, len(parts) + 1), bytearray(parts[other]))
            if random.random() < 0.5:
                del parts[random.randrange(1, len(parts))]
    whole, events = bytearray(log[:4]), []
    for part in parts:
        events.append((len(whole), len(part)))
        whole += part
    return summed(whole, events)


def shown(mysqlbinlog: Sequence[str], log: bytes, file: Path) -> tuple[Counter[str], bool]:
    """The row changes that mysqlbinlog shows of a log, by their letter, and whether these are all."""
    file.write_bytes(log)
    argv = [*mysqlbinlog, "-v", "--base64-output=decode-rows", "--verify-binlog-checksum", str(file)]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=60)
    # Rows of a last statement without its end flag are left out, with a warning.
    whole = done.returncode == 0 and b"STMT_END_F" not in done.stderr
    lines = done.stdout.decode("latin-1").split("\n")
    return Counter(letter for line in lines for head, letter in _HEADS.items() if line.startswith(head)), whole


def staged_of(found: Staged) -> Counter[str]:
    """The records of a staged log, by their letter."""
    letters: Counter[str] = Counter()
    for counts in found.counts.values():
        letters.update({"I": counts.inserts, "U": counts.updates, "D": counts.deletes})
    return letters


def more_than(ours: Counter[str], theirs: Counter[str]) -> bool:
    """Whether records say more than the changes do; an update of a key is a delete and an insert."""
    split = theirs["U"] - ours["U"]
    return split < 0 or ours["I"] > theirs["I"] + split or ours["D"] > theirs["D"] + split
