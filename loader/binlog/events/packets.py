"""Extracts events from the packets of a replication connection, block by block.

Format: "Packets" of the client/server protocol: length 3, sequence number 1; a packet of 2^24-1 bytes continues in the
next one. "Binlog Network Stream": the first byte of a packet is 0 (an event follows), fe (end) or ff (error).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel
from loader.binlog.values.digits import little

MORE, REPLY, NEXT, DAMAGED = range(4)
"""Statuses of the kernel.

MORE: the block is used up.
REPLY: the packet at state[READ] is an end or an error, not an event, and is complete.
NEXT: the packet at state[READ] is a second FORMAT_DESCRIPTION: the next file begins.
DAMAGED: an empty packet that continues no other packet, or more event bytes than `out` has room for.
"""

READ, WRITTEN, LEFT, CONTINUED, BEGUN, SKIPPED, FORMATTED = range(7)
"""The kernel's state.

READ: offset of the next byte in the block.
WRITTEN: bytes of events written.
LEFT: payload bytes left in the open packet.
CONTINUED: 1 if the next packet continues the event.
BEGUN: offset in `out` where the last event begins; the caller's -1 remains if none begins.
SKIPPED: 1 if the event is a heartbeat, which belongs to no log and is not written.
FORMATTED: 1 after a FORMAT_DESCRIPTION; the caller sets -1 to read more than one file.
"""

_LONGEST = 0xFFFFFF
_TYPE = 9  # offset in a packet of the event type


@kernel("int64(uint8[::1], int64, uint8[::1], int64[::1])")
def unpack(block: Bytes, size: int, out: Bytes, state: NDArray[np.int64]) -> int:
    """Copy the event bytes in block[state[READ]:size] to `out`, which is at least as long; return a status."""
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
                    return DAMAGED  # the next packet's first byte would be read as its own, and LEFT become negative
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
