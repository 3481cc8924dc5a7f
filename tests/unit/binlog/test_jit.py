"""Kernels are compiled without the test for negative indexes; functions of others keep it."""

from __future__ import annotations

import zlib

import numba
import numpy as np
from numba.np import arrayobj

from loader.binlog.crc import crc32
from loader.binlog.jit import kernel


def test_only_kernels_lose_the_test_of_indexes() -> None:
    before = arrayobj.fix_integer_index

    @kernel("uint8(uint8[::1], int64)")
    def last(block: np.ndarray, at: int) -> np.uint8:
        return block[at]

    @numba.njit
    def theirs(block: np.ndarray, at: int) -> np.uint8:
        return block[at]

    block = np.arange(8, dtype=np.uint8)
    assert arrayobj.fix_integer_index is before
    assert theirs(block, -1) == 7
    view = block[4:]  # element -1 of it is element 3 of the block
    assert last(view, -1) == 3


def test_the_checksum_reads_words_as_zlib_does() -> None:
    @kernel("uint32(uint8[::1], int64, int64)")
    def sums(block: np.ndarray, start: int, end: int) -> np.uint32:
        return crc32(block, start, end)

    data = bytes(range(256)) * 3
    block = np.frombuffer(data, np.uint8).copy()
    for start in range(9):
        for end in range(start, start + 40):
            assert sums(block, start, end) == zlib.crc32(data[start:end])
