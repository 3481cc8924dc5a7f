"""The C library's memory, kept for the blocks of threads that come next instead of given back after each."""

from __future__ import annotations

import ctypes

# malloc.h of glibc; see mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT_BYTES = 1 << 30


def keep_memory() -> None:
    """Let the threads of this process share one arena that keeps what is freed, if its C library is glibc.

    Threads otherwise get arenas that give the pages of every block back, and fault them in again for the next one.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((_ARENA_MAX, 1), (_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _KEPT_BYTES)):
            mallopt(parameter, value)
