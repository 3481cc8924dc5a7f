"""Settings of the C library's allocator: freed memory is kept for the blocks that threads allocate next."""

from __future__ import annotations

import ctypes

# malloc.h of glibc; see mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT_BYTES = 1 << 30


def keep_memory() -> None:
    """Make all threads of this process share one arena that keeps freed memory, if the C library is glibc.

    Otherwise each thread gets an arena that returns the pages of every block and faults them in again for the next
    block. Reading and verifying a staged file then takes up to three times as long.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_ARENA_MAX, 1), (_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _KEPT_BYTES)):
            mallopt(parameter, value)
