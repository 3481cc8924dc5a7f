"""What the kernels tell of staged lines, beside a plain reading of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.native_collapse.staged_lines import keep, longest, scan

SECRET = np.frombuffer(bytes(range(16)), np.uint64).copy()
# The first of the reference implementation's vectors_sip128, of the bytes 0, 1, 2... by the key 0, 1, 2, ..., 15.
VECTORS = (
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
)
WORD = 1 << 64


def scanned(data: bytes, keys: list[int], room: int | None = None) -> tuple[int, list[list[int]], list[bytes]]:
    lines = data.count(b"\n") if room is None else room
    records, hashes = np.zeros((lines, 4), np.int64), np.zeros((lines, 2), np.uint64)
    count = scan(np.frombuffer(data, np.uint8).copy(), np.array(keys, np.uint8), SECRET, records, hashes)
    return count, records.tolist(), [row.tobytes() for row in hashes]


def siphash(data: bytes, key: bytes) -> bytes:
    """SipHash-2-4 with 128 bits, by the paper, on Python's integers."""
    low, high = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D, low ^ 0x6C7967656E657261, high ^ 0x7465646279746573]
    v[1] ^= 0xEE

    def turn(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) % WORD

    def rounds(times: int) -> None:
        for _ in range(times):
            v[0] = (v[0] + v[1]) % WORD
            v[2] = (v[2] + v[3]) % WORD
            v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
            v[0] = turn(v[0], 32)
            v[2] = (v[2] + v[1]) % WORD
            v[0] = (v[0] + v[3]) % WORD
            v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
            v[2] = turn(v[2], 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) % 256])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return b"".join(half.to_bytes(8, "little") for half in (first, v[0] ^ v[1] ^ v[2] ^ v[3]))


def test_hashes_are_those_of_the_reference_implementation() -> None:
    for size, expected in enumerate(VECTORS):
        data = bytes(range(size))
        assert siphash(data, SECRET.tobytes()).hex() == expected
        assert scanned(b"I,1,2,t,," + data + b"\n", [1])[2][0].hex() == expected


@given(st.binary(max_size=300).map(lambda data: data.translate(None, b'\n,"')))
def test_a_key_of_any_length_has_the_hash_of_its_bytes(data: bytes) -> None:
    assert scanned(b"I,1,2,t,," + data + b"\n", [1])[2] == [siphash(data, SECRET.tobytes())]


@given(st.lists(st.tuples(st.sampled_from("IUD"), st.integers(0, 10**18 - 1), st.integers(0, 10**12), st.text())))
def test_a_line_is_told_as_it_is(rows: list[tuple[str, int, int, str]]) -> None:
    texts = [text.replace("\n", "\\n").replace('"', '""') for *_, text in rows]
    data = "".join(
        f'{op},{seqno},{offset},now,{"0f" if op == "U" else ""},"{text}",7,"a"",b"\n'
        for (op, seqno, offset, _), text in zip(rows, texts, strict=True)
    ).encode("utf-8", "surrogatepass")
    count, records, hashes = scanned(data, [1, 0, 0])
    assert count == len(rows)
    assert records == [[ord(op), seqno, offset, int(op == "U")] for op, seqno, offset, _ in rows]
    assert hashes == [siphash(f'"{text}"'.encode("utf-8", "surrogatepass"), SECRET.tobytes()) for text in texts]


def test_a_key_of_two_columns_is_not_one_of_their_text_side_by_side() -> None:
    data = b"I,1,2,t,,ab,c\nI,1,3,t,,a,bc\nI,1,4,t,,ab,c\n"
    _, _, hashes = scanned(data, [1, 1])
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.parametrize(
    "damage",
    [
        b"I,1,2,t,,a",  # the end is missing
        b"I,1,2,t,,a,b\n",  # a field too many
        b"I,1,2,t,\n",  # one too few
        b'I,1,2,t,,"a\n',  # an open quote
        b'I,1,2,t,,"a"b\n',  # something behind it
        b"XY,1,2,t,,a\n",
        b"I,x,2,t,,a\n",
        b"I,-1,2,t,,a\n",
        b"I,,2,t,,a\n",
        b"I,1,1000000000000000000,t,,a\n",
        b"I,1,2,t,,a\n\n",
    ],
)
def test_damage_is_seen(damage: bytes) -> None:
    assert scanned(damage, [1], room=2)[0] == -1


def test_more_lines_than_there_is_room_for() -> None:
    assert scanned(b"I,1,2,t,,a\nI,1,3,t,,b\n", [1], room=1)[0] == -1


@given(st.lists(st.tuples(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), st.booleans())))
def test_wanted_lines_are_kept_as_they_are(lines: list[tuple[bytes, bool]]) -> None:
    data = np.frombuffer(b"".join(line + b"\n" for line, _ in lines), np.uint8).copy()
    assert longest(data) == max((len(line) + 1 for line, _ in lines), default=0)
    size = keep(data, np.array([wanted for _, wanted in lines], np.uint8))
    assert data[:size].tobytes() == b"".join(line + b"\n" for line, wanted in lines if wanted)
