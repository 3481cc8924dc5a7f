"""The kernel's CRC-32 is zlib's."""

from __future__ import annotations

import zlib

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from loader.binlog.native.compiler import kernel
from loader.binlog.native.crc import crc32


@kernel("uint32(uint8[::1], int64, int64)")
def summed(buf: NDArray[np.uint8], start: int, end: int) -> np.uint32:
    return crc32(buf, start, end)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200), st.integers(0, 20), st.integers(0, 20))
def test_any_bytes_from_any_place(data: bytes, skip: int, cut: int) -> None:
    start, end = min(skip, len(data)), max(min(skip, len(data)), len(data) - cut)
    block = np.frombuffer(data or b"\0", np.uint8).copy()
    assert summed(block, start, end) == zlib.crc32(data[start:end])


def test_every_length_up_to_a_kibibyte_and_a_large_one() -> None:
    data = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    for end in [*range(1025), 1 << 20]:
        assert summed(data, 0, end) == zlib.crc32(data[:end].tobytes())
