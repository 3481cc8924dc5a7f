"""Settings of the C library's allocator: freed memory is kept for the blocks that threads allocate next."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

# malloc.h of glibc; see mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGEST_BLOCKS = (1 << 30, 1 << 25)
"""The size of blocks from which on their memory is not kept: the first one that is accepted.

Older releases of glibc refuse more than 32 MB.
"""


def keep_memory(most_bytes: int = 1 << 30) -> None:
    """Make all threads of this process share one arena that keeps freed memory, if the C library is glibc.

    Otherwise each thread gets an arena that returns the pages of every block and faults them in again for the next
    block. Reading and verifying a staged file then takes up to three times as long.

    Args:
        most_bytes: freed memory that is kept.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        keep_with(mallopt, most_bytes)


def keep_with(mallopt: Callable[[int, int], int], most_bytes: int) -> None:
    """See `keep_memory`. `mallopt` sets a parameter, and returns 0 if it refuses the value."""
    mallopt(_ARENA_MAX, 1)
    # Any other parameter ends the growth of this one, which begins at 128 KB.
    if any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGEST_BLOCKS):
        mallopt(_TRIM_THRESHOLD, most_bytes)
