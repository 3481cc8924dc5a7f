"""The allocator of the C library is asked for what its release accepts."""

from __future__ import annotations

import pytest

from loader.spark.allocator import keep_with

_MB = 1 << 20
_TRIM, _MMAP, _ARENAS = -1, -3, -8


@pytest.mark.parametrize(
    ("largest", "accepted"),
    [
        (1024 * _MB, [(_ARENAS, 1), (_MMAP, 1024 * _MB), (_TRIM, 256 * _MB)]),
        (32 * _MB, [(_ARENAS, 1), (_MMAP, 32 * _MB), (_TRIM, 256 * _MB)]),
        # Otherwise blocks of 128 KB and more would return their memory at once.
        (16 * _MB, [(_ARENAS, 1)]),
    ],
)
def test_memory_is_kept_as_far_as_the_library_lets(largest: int, accepted: list[tuple[int, int]]) -> None:
    found = []

    def mallopt(parameter: int, value: int) -> int:
        if parameter == _MMAP and value > largest:
            return 0
        found.append((parameter, value))
        return 1

    keep_with(mallopt, 256 * _MB)
    assert found == accepted
