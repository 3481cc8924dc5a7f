"""Cuts MariaDB's encrypted events into cipher blocks, and assembles events from decrypted blocks.

For the format see loader.binlog.crypto.encryption. AES itself is in the transport. It gets all blocks of a range of the
log in one call: to decrypt a chain of blocks (AES-CBC), each block is decrypted and XORed with the cipher text before
it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.constants import HEADER
from loader.binlog.native.buffer import Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.values.digits import little

BLOCK = 16
"""Bytes of a cipher block."""

_SHIFTED, _LENGTH_AT, _LENGTH_END = 4, 9, 13

Ints = NDArray[np.int64]

BASE, EVENT, LENGTH, FIRST, END, CIPHERS, COUNTERS = range(7)
"""Fields of a span.

Input:
    BASE: file offset of the first byte.
    EVENT: file offset of the first event.
    LENGTH: its length.
    FIRST: number of its first block. The bytes start with the block before it, if there is one.
Output:
    EVENT, LENGTH: of the last event; LENGTH is 0 if its header is truncated or wrong.
    END: file offset up to which the bytes are whole blocks.
    CIPHERS: number of blocks for AES to decrypt.
    COUNTERS: number of counters and initial vectors for AES to encrypt.
"""

PLACE, SIZE, COUNTED, HEADED = range(4)
"""Fields of a piece of clear text: its offset in the span; its bytes; 1 if a counter decrypts it; 1 if it begins an
event."""


@kernel("int64(uint8[::1], int64, int64, int64, int64)")
def hop(block: Bytes, size: int, base: int, event: int, wanted: int) -> int:
    """Return the file offset of the event that holds byte `wanted`, from that of an earlier event.

    Stop at an event whose length is not in block[:size], or is wrong.
    """
    while event + _LENGTH_END <= base + size:
        length = np.int64(little(block, event + _LENGTH_AT - base, 4))
        if length < HEADER or event + length > wanted:
            return event
        event += length
    return event


@part
def _copy(block: Bytes, at: int, headed: int, out: Bytes, to: int, size: int) -> None:
    """Copy cipher text from `at` on. The first four bytes of an event's cipher text are stored before its header."""
    for i in range(size):
        out[to + i] = block[at + i]
    if headed:
        for i in range(4):
            out[to + _LENGTH_AT - _SHIFTED + i] = block[at - _SHIFTED + i]


@part
def _vector(nonce: Bytes, event: int, number: int, out: Bytes, to: int) -> None:
    """Write the initial vector of an event plus `number`."""
    for i in range(12):
        out[to + i] = nonce[i]
    for i in range(4):
        out[to + 12 + i] = (event >> (8 * i)) & 0xFF
    rest = number
    for i in range(BLOCK):
        rest += np.int64(out[to + 15 - i])
        out[to + 15 - i] = rest & 0xFF
        rest >>= 8


@kernel("int64(uint8[::1], int64, int64[::1], uint8[::1], int64, uint8[::1], uint8[::1], uint8[::1], int64[:,::1])")
def gather(
    block: Bytes,
    size: int,
    span: Ints,
    nonce: Bytes,
    counted: int,
    ciphers: Bytes,
    counters: Bytes,
    masks: Bytes,
    pieces: Ints,
) -> int:
    """Cut block[:size] into cipher blocks; return the number of pieces. Stop before an event whose length is wrong.

    Args:
        block: bytes of the log.
        size: bytes used in `block`.
        span: see BASE.
        nonce: of the file.
        counted: 1 for AES-CTR, 0 for AES-CBC.
        ciphers: output: blocks for AES to decrypt.
        counters: output: blocks for AES to encrypt.
        masks: output: what to XOR the results of AES with.
        pieces: output: pieces of clear text, fields PLACE to HEADED.
    """
    base, event, length, first = span[BASE], span[EVENT], span[LENGTH], span[FIRST]
    found = used = made = 0
    while True:
        at = event if first == 0 else event + _SHIFTED + BLOCK * first
        span[EVENT], span[LENGTH], span[END] = event, length, at
        span[CIPHERS], span[COUNTERS] = used, made
        if length == 0:
            return found
        whole = (length - _SHIFTED) // BLOCK
        for number in range(first, whole + 1):
            at = event + _SHIFTED + BLOCK * number - base
            count = BLOCK if number < whole else (length - _SHIFTED) % BLOCK
            if at + count > size:
                return found
            if count == 0:
                continue
            headed = 1 if number == 0 else 0
            chained = counted == 0 and number < whole
            if chained:
                _copy(block, at, headed, ciphers, used * BLOCK, BLOCK)
                if number == 0:
                    _vector(nonce, event, 0, masks, found * BLOCK)
                else:
                    _copy(block, at - BLOCK, number == 1, masks, found * BLOCK, BLOCK)
                used += 1
            else:
                _vector(nonce, event, number if counted else 0, counters, made * BLOCK)
                _copy(block, at, headed, masks, found * BLOCK, count)
                made += 1
            pieces[found, PLACE], pieces[found, SIZE] = at, count
            pieces[found, COUNTED], pieces[found, HEADED] = (0 if chained else 1), headed
            found += 1
            span[END] = base + at + count
            span[CIPHERS], span[COUNTERS] = used, made
        event += length
        first = 0
        length = 0
        if event + _LENGTH_END <= base + size:
            length = np.int64(little(block, event + _LENGTH_AT - base, 4))
            if length < HEADER:
                length = 0


@kernel("int64(int64[:,::1], int64, uint8[::1], uint8[::1], uint8[::1], uint8[::1])")
def scatter(pieces: Ints, count: int, opened: Bytes, counters: Bytes, masks: Bytes, block: Bytes) -> int:
    """Write the clear text into the block that `gather` cut, from the results of AES; return the number of pieces."""
    used = made = 0
    for n in range(count):
        at, mask = pieces[n, PLACE], n * BLOCK
        if pieces[n, COUNTED]:
            for i in range(pieces[n, SIZE]):
                masks[mask + i] ^= counters[made * BLOCK + i]
            made += 1
        else:
            for i in range(BLOCK):
                masks[mask + i] ^= opened[used * BLOCK + i]
            used += 1
        for i in range(pieces[n, SIZE]):
            if pieces[n, HEADED] and _LENGTH_AT <= i + _SHIFTED < _LENGTH_END:
                block[at + i - _LENGTH_AT] = masks[mask + i]
            else:
                block[at + i] = masks[mask + i]
    return count
