"""The counting kernel: events of a block of log and their bytes, by type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import HEADER
from loader.binlog.digits import Bytes, little
from loader.binlog.jit import kernel


@kernel("int64(uint8[::1], int64, int64[:,::1])")
def tally(block: Bytes, size: int, counts: NDArray[np.int64]) -> int:
    """Count the events at the start of block[:size] and their bytes by type, in counts[type]; the bytes counted."""
    at = 0
    while at + HEADER <= size:
        length = np.int64(little(block, at + 9, 4))
        if length < HEADER or at + length > size:
            break
        counts[block[at + 4], 0] += 1
        counts[block[at + 4], 1] += length
        at += length
    return at
