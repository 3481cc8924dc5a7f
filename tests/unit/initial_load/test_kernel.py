"""The chunk kernel on packets: every type, any cut, too little room, damage."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from loader.binlog.program import codepage_array, codepage_offsets, text_operation
from loader.binlog.values.codepoints import Codes
from loader.initial_load.result_set import kernel as k
from loader.initial_load.result_set import program as p
from loader.model.table import Column
from tests.unit.initial_load.packets import COLUMNS, END, LONGEST, ROWS, packed, packet, row, stage

ALL = b"".join(packet(payload) for payload, _ in ROWS)
LINES = b"".join(line for _, line in ROWS)
TEXT = np.array([(p.TEXT, 0)], np.int64)


def test_rows_of_every_type() -> None:
    status, lines, state = stage(ALL + END, head=b"I,1,")
    assert lines == b"".join(b"I,1," + line for _, line in ROWS)
    assert status == k.REPLY
    assert (state[k.ROWS], state[k.AT]) == (len(ROWS), len(ALL))


def test_a_block_that_is_cut_anywhere() -> None:
    ends = [0]
    for payload, _ in ROWS[:3]:
        ends.append(ends[-1] + len(packet(payload)))
    first = ALL[: ends[-1]] + END
    for size in range(len(first)):
        status, lines, state = stage(first[:size])
        whole = max(n for n, end in enumerate(ends) if end <= size)
        assert status == k.MORE
        assert state[k.AT] == ends[whole]
        assert lines == b"".join(line for _, line in ROWS[:whole])


def test_rows_wait_for_room() -> None:
    for room in (0, 1, 400, 700, 1000, 150_000, 200_000):
        status, lines, state = stage(ALL + END, room=room)
        assert LINES.startswith(lines)
        assert len(lines) <= room
        assert status == (k.NO_ROOM if state[k.ROWS] < len(ROWS) else k.REPLY)


def test_text_fills_its_room_at_worst() -> None:
    payload = packet(row(packed(b'"' * 1000)))
    for room in range(2000, 2100):
        status, lines, _ = stage(payload, TEXT, room=room)
        assert (status, lines) in [(k.NO_ROOM, b""), (k.MORE, b'"' + b'""' * 1000 + b'"\n')]


@pytest.mark.parametrize("size", [LONGEST - 7, LONGEST - 6, LONGEST - 5, 2 * LONGEST - 11, 2 * LONGEST + 5])
def test_a_row_in_several_packets(size: int) -> None:
    value = b"0123456789" * (size // 10) + b"x" * (size % 10)
    data = packet(row(packed(value))) + packet(row(packed(b"next"))) + END
    status, lines, _ = stage(data, TEXT, room=2 * size + 1000)
    assert status == k.REPLY
    assert lines == b'"' + value + b'"\n"next"\n'
    status, lines, state = stage(data[: len(data) - len(END) - 20], TEXT, room=2 * size + 1000)
    assert (status, lines, state[k.AT]) == (k.MORE, b"", 0)


@pytest.mark.parametrize("reply", [b"\xfe\0\0\2\0", b"\xff\x15\x04#HY000no", b""])
def test_what_is_no_row_ends_the_rows(reply: bytes) -> None:
    status, lines, state = stage(packet(row(packed(b"x"))) + packet(reply), TEXT)
    assert (status, lines, state[k.AT]) == (k.REPLY, b'"x"\n', len(packet(row(packed(b"x")))))


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"ok\xf5"])
def test_text_that_is_not_utf8(bad: bytes) -> None:
    status, _, state = stage(packet(row(packed(b"ok"), packed(bad))), np.concatenate([TEXT, TEXT]))
    assert (status, state[k.COLUMN], state[k.ROWS]) == (k.BAD_VALUE, 1, 0)


DAMAGED = [b"\0", b"\0\0\5abc", b"\0\0\xfcab", b"\0\0\xfd\xff\xff", b"\0\0\xfe" + b"\xff" * 8, b"\0\0\1ab", b"\0\0"]


@pytest.mark.parametrize("payload", DAMAGED)
def test_a_row_that_does_not_fit_its_packet(payload: bytes) -> None:
    assert stage(packet(payload), TEXT)[0] == k.DAMAGED


def test_damaged_rows_end_in_a_status() -> None:
    dice = random.Random(5)
    payloads = [bytearray(payload) for payload, _ in ROWS[:3]]
    for _ in range(3000):
        payload = bytearray(dice.choice(payloads))
        for _ in range(dice.randint(1, 4)):
            payload[dice.randrange(1, len(payload))] = dice.choice([0, 1, 250, 252, 253, 254, 255, dice.randrange(256)])
        data = packet(bytes(payload[: dice.randint(1, len(payload))])) + END
        status, lines, _ = stage(data, COLUMNS)
        assert status in {k.REPLY, k.BAD_VALUE, k.DAMAGED}
        assert lines.count(b"\n") <= 1


FOREIGN = tuple(
    Column(f"c{n}", "varchar", charset=charset)
    for n, charset in enumerate(("latin1", "gbk", "koi8r", "utf16", "utf32", "ujis", "gb18030"))
)
FOREIGN_TEXTS = ("é", '你"', "пр\\", "😀\n", "😀", "日ｱ", "你😀")
FOREIGN_CODECS = ("cp1252", "gbk", "koi8-r", "utf-16-be", "utf-32-be", "euc_jp", "gb18030")


def foreign() -> tuple[k.Ints, Codes]:
    """The program of columns in many character sets, and a vector."""
    kinds = (k.LATIN1, k.MULTIBYTE, k.SINGLE, k.UNICODE, k.UNICODE, k.MULTIBYTE, k.MULTIBYTE)
    first = codepage_offsets(FOREIGN)
    operations = [text_operation(column.charset, first) for column in FOREIGN]
    rows = [(kind, 0, *operation[1:]) for kind, operation in zip(kinds, operations, strict=True) if operation]
    return np.array([*rows, (k.VECTOR, 0, 0, 0, 4)], np.int64), codepage_array(tuple(first))


def foreign_row() -> bytes:
    raws = [text.encode(codec) for text, codec in zip(FOREIGN_TEXTS, FOREIGN_CODECS, strict=True)]
    return row(*map(packed, raws), packed(struct.pack("<2f", 1, -0.5)))


def test_texts_in_the_character_sets_of_their_columns() -> None:
    columns, tables = foreign()
    status, lines, _ = stage(packet(foreign_row()) + END, columns, tables=tables)
    assert status == k.REPLY
    assert lines.decode() == '"é","你""","пр\\\\","😀\\n","😀","日ｱ","你😀","[1,-0.5]"\n'


def test_the_longest_growth_of_text_fits_its_room() -> None:
    columns, tables = foreign()
    single = columns[5:6]
    payload = row(packed(b"\x8e\xb1" * 5000))
    for room in (100, 5000, 14_000, 15_000, 20_000, 40_000):
        status, lines, _ = stage(packet(payload) + END, single, room=room, tables=tables)
        assert (status, lines) in ((k.NO_ROOM, b""), (k.REPLY, ('"' + "ｱ" * 5000 + '"\n').encode()))


def test_damaged_texts_end_in_a_status() -> None:
    columns, tables = foreign()
    dice = random.Random(6)
    whole = foreign_row()
    for _ in range(3000):
        payload = bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            payload[dice.randrange(1, len(payload))] = dice.choice(
                [0, 0x8E, 0x8F, 0xD8, 0xDC, 0xFF, dice.randrange(256)]
            )
        status, lines, state = stage(
            packet(bytes(payload[: dice.randint(1, len(payload))])) + END, columns, tables=tables
        )
        assert status in {k.REPLY, k.BAD_VALUE, k.DAMAGED}
        assert status != k.BAD_VALUE or 0 <= state[k.COLUMN] < len(columns)
        lines.decode()
