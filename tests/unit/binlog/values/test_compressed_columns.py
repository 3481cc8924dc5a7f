"""MariaDB's COMPRESSED columns: valid zlib data is decompressed, everything else is refused."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.native.inflate import ENTRIES, WIDTH
from loader.binlog.values.binary_json import STACK
from loader.errors import DataError
from tests.unit.binlog.fields import BINARY, LATIN1, compressed, compressed_blob
from tests.unit.binlog.values.test_quoted_text import column, quoted

MANY = settings(max_examples=80, deadline=None)
STRATEGIES = [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]
GBK = 28
FIELD = compressed_blob("v", 4, BINARY)


def stored(raw: bytes, *, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY, wrap: bool = False) -> bytes:
    """The value as the server stores it."""
    count = max(1, (len(raw).bit_length() + 7) // 8)
    packer = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS if wrap else -zlib.MAX_WBITS, 8, strategy)
    head = bytes([0x80 | count | (0 if wrap else 8)]) + len(raw).to_bytes(count, "big")
    return head + packer.compress(raw) + packer.flush()


def values() -> list[bytes]:
    """Values that make blocks of every kind, with near and far repetitions."""
    dice = random.Random(5)
    noise = dice.randbytes(40_000)
    words = b" ".join(dice.choice([b"alpha", b"beta", b"gamma", b"delta", b"eps"]) for _ in range(9000))
    return [
        b"x",
        b"a" * 100_000,
        noise,
        words,
        noise[:32768] + words[:10] + noise[:32768],
        bytes(range(256)) * 300,
        b"ab" * 129,
    ]


def test_the_scratch_space_is_large_enough() -> None:
    assert STACK[0] * STACK[1] >= ENTRIES
    assert STACK[1] == WIDTH


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("level", [0, 1, 6, 9])
def test_all_that_zlib_can_write(level: int, strategy: int, wrap: bool) -> None:
    raws = values()
    packed = [stored(raw, level=level, strategy=strategy, wrap=wrap) for raw in raws]
    assert column(FIELD, *packed) == [f'"{raw.hex()}"' for raw in raws]


def test_values_that_are_empty_or_not_compressed() -> None:
    assert column(compressed(), b"", b"\0", b"\0x", "\0é😀".encode()) == ['""', '""', '"x"', '"é😀"']
    assert column(compressed("v", 20, LATIN1), b"\0\xe9", stored(b"\x80" * 100)) == ['"é"', quoted("€" * 100)]
    assert column(compressed_blob("v", 1, BINARY), b"\0\0") == ['"00"']


def test_compressed_text_is_in_its_character_set_and_escaped() -> None:
    text = '你\\"\n丂' * 3000
    assert column(compressed("v", 65535, GBK), stored(text.encode("gbk"))) == [quoted(text)]
    assert column(compressed_blob("v", 3, 54), stored(text.encode("utf-16-be"))) == [quoted(text)]
    for field, raw in ((compressed(), b"\xff" * 50), (compressed("v", 65535, GBK), b"\x81" * 51)):
        with pytest.raises(DataError, match="a value is not a varchar"):
            column(field, stored(raw))


@MANY
@given(st.binary(max_size=5000), st.sampled_from(STRATEGIES), st.integers(0, 9), st.booleans())
def test_any_bytes(raw: bytes, strategy: int, level: int, wrap: bool) -> None:
    assert column(FIELD, stored(raw, level=level, strategy=strategy, wrap=wrap)) == [f'"{raw.hex()}"']


def refused(raw: bytes) -> bool:
    try:
        column(FIELD, raw)
    except DataError as error:
        assert error.where["column"] == "v"
        return True
    return False


@pytest.mark.parametrize("wrap", [False, True])
def test_every_shorter_or_longer_value_is_refused(wrap: bool) -> None:
    whole = stored(b"some words and some more words, " * 9, wrap=wrap)
    assert not refused(whole)
    assert all(refused(whole[:size]) for size in range(1, len(whole)))
    assert refused(whole + b"\0")
    longer, shorter = bytearray(whole), bytearray(whole)
    longer[2] += 1
    shorter[2] -= 1
    assert refused(bytes(longer))
    assert refused(bytes(shorter))


@pytest.mark.parametrize(
    "raw", [b"\x10x", b"\x80", b"\x88", b"\x8d" + bytes(9), b"\x8f", b"\x89\5", b"\x89\1\7", b"\x8c\xff\xff\xff\xff\x03\0",
            b"\x81\1\x78\x9c", b"\x81\1\x78\x9d\x4b\4\0\0\x62\0\x62", b"\x81\1\x78\x9c\x4b\4\0\0\x62\0\x63"]
)  # fmt: skip
def test_heads_and_sums_that_are_wrong(raw: bytes) -> None:
    assert refused(raw)


def test_a_flipped_bit_is_seen_where_zlib_sees_it() -> None:
    whole = stored(b"some words and some more words, " * 9, wrap=True)
    unseen = 0
    for bit in range(24, 8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        try:
            zlib.decompress(bytes(flipped[3:]))
            unseen += 1
        except zlib.error:
            assert refused(bytes(flipped))
        else:
            assert not refused(bytes(flipped))
    assert unseen < 8  # bits between the data and the sum


@MANY
@given(st.binary(max_size=300), st.integers(0, 2**16 - 1))
def test_no_bytes_at_all_can_do_harm(raw: bytes, size: int) -> None:
    packed = b"\x8a" + size.to_bytes(2, "big") + raw
    try:
        expected = zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw)
    except zlib.error:
        expected = None
    if not refused(packed):
        assert column(FIELD, packed) == [f'"{(expected or b"").hex()}"']
