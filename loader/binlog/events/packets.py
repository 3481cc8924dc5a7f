"""Takes the events out of the packets of a replication connection, block by block.

Format: the protocol's "Packets" (3 bytes length, 1 sequence number; a packet of 2^24-1 bytes is continued by the
next) and "Binlog Network Stream" (first byte 0: an event follows, fe: end, ff: error).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel
from loader.binlog.values.digits import little

MORE, REPLY, NEXT, DAMAGED = range(4)
"""MORE: the block is used up. REPLY: the packet at state[READ] is no event (end or error) and is whole. NEXT: it is the
second FORMAT_DESCRIPTION, with which the next file begins. DAMAGED: an empty packet that continues no other one, or
events that `out` has no room for."""

READ, WRITTEN, LEFT, CONTINUED, BEGUN, SKIPPED, FORMATTED = range(7)
"""State: next byte of the block; bytes of events written; payload bytes of the open packet; 1: the next packet
continues the event; where in `out` the last event begins, unless the caller's -1 is left; 1: the event is a heartbeat,
which is of no log and left out; 1: there was a FORMAT_DESCRIPTION;
-1: several files are wanted."""

_LONGEST = 0xFFFFFF
_TYPE = 9  # bytes from the start of a packet to the type of its event


@kernel("int64(uint8[::1], int64, uint8[::1], int64[::1])")
def unpack(block: Bytes, size: int, out: Bytes, state: NDArray[np.int64]) -> int:
    """Copy the event bytes in block[state[READ]:size] to `out`, which is at least as long; a status."""
    while True:
        at = state[READ]
        if state[LEFT] == 0:
            if at + 4 > size:
                return MORE
            length = np.int64(little(block, at, 3))
            if state[CONTINUED]:
                state[READ] = at + 4
                state[LEFT] = length
                state[CONTINUED] = 1 if length == _LONGEST else 0
                if length == 0:
                    continue
            else:
                if length == 0:
                    return DAMAGED  # its first byte would be the next packet's, and LEFT would be negative
                if at + 5 > size:
                    return MORE
                if block[at + 4] != 0:
                    return REPLY if at + 4 + length <= size else MORE
                if length > _TYPE - 4:
                    if at + _TYPE >= size:
                        return MORE
                    kind = block[at + _TYPE]
                    state[SKIPPED] = 1 if kind == 27 or kind == 41 else 0
                    if kind == 15:
                        if state[FORMATTED] == 1:
                            return NEXT
                        state[FORMATTED] = state[FORMATTED] or 1
                else:
                    state[SKIPPED] = 0
                if not state[SKIPPED]:
                    state[BEGUN] = state[WRITTEN]
                state[READ] = at + 5
                state[LEFT] = length - 1
                state[CONTINUED] = 1 if length == _LONGEST else 0
            at = state[READ]
        take = min(state[LEFT], size - at)
        if take == 0:
            return MORE
        if not state[SKIPPED]:
            written = state[WRITTEN]
            if written + take > len(out):
                return DAMAGED
            for i in range(take):
                out[written + i] = block[at + i]
            state[WRITTEN] += take
        state[READ] += take
        state[LEFT] -= take
