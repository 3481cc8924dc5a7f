"""The row kernel: row events of one table in, staged lines out, with no Python object per row.

Format of a rows event: MySQL internals, "Rows_event". After the 19-byte header: table id (6), flags (2), in version 2
the length of extra data (2, counting itself) and that data; then the number of columns, a bitmap of the columns
present (two for an update), and row images, each a bitmap of NULLs and the values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.codepoints import Codes
from loader.binlog.columns import put_value
from loader.binlog.digits import Bytes, little, put_fraction, put_instant, put_unsigned
from loader.binlog.jit import kernel, part
from loader.binlog.jsonb import SLACK
from loader.binlog.packed import room_of
from loader.binlog.program import COMPRESSED, MOST, OP, PREFIX, SIZE, X, Y
from loader.binlog.texts import BAD

Ints = NDArray[np.int64]

DONE, NO_ROOM, DAMAGED, BAD_VALUE, PARTIAL_IMAGE = range(5)
"""What the kernel came back with: all written; the output block is full; a row reaches past its event or the column
count differs; a value that is not of its type; an image that leaves columns out."""

EVENT, AT, OUT, INSERTS, UPDATES, DELETES, COLUMN, EVERY_UPDATE = range(8)
"""The kernel's state: next event; offset in it of the next row (0: its start); bytes in the output block; records
written by kind; column of a bad value; 1 to write every update as delete and insert."""

_ABSENT = -1
HEAD = 96
_LINE = 192
_COMMA = np.uint8(44)
_NEWLINE = np.uint8(10)
_I, _U, _D = np.uint8(73), np.uint8(85), np.uint8(68)
_N = np.frombuffer(b"\\N", np.uint8).copy()


@part
def packed_length(buf: Bytes, pos: int, end: int) -> tuple[int, np.int64]:
    """A length-encoded integer: the position after it (BAD when cut) and the value."""
    if pos >= end:
        return BAD, np.int64(0)
    first = buf[pos]
    if first < 251:
        return pos + 1, np.int64(first)
    size = 2 if first == 252 else 3 if first == 253 else 8
    if pos + 1 + size > end:
        return BAD, np.int64(0)
    return pos + 1 + size, np.int64(little(buf, pos + 1, size))


@part
def _measure(buf: Bytes, pos: int, end: int, columns: Ints, starts: Ints, ends: Ints) -> tuple[int, int]:
    """Where each value of a row image lies; `ends` is -1 for NULL. The position after it, and room for its text.

    How long the text of a JSON will be is not known: it takes what the room of the rest leaves.
    """
    count = len(columns)
    nulls = pos
    pos += (count + 7) // 8
    need = _LINE
    if pos > end:
        return BAD, 0
    for i in range(count):
        if buf[nulls + (i >> 3)] >> np.uint8(i & 7) & 1:
            starts[i] = pos
            ends[i] = _ABSENT
            need += 3
            continue
        prefix = columns[i, PREFIX]
        if prefix:
            if pos + prefix > end:
                return BAD, 0
            size = np.int64(little(buf, pos, prefix))
            pos += prefix
            if columns[i, OP] == COMPRESSED:
                need += 5 + (room_of(buf, pos, pos + size) if pos + size <= end else 0)
            else:
                need += 5 + columns[i, MOST] * max(size, columns[i, SIZE])
        else:
            size = columns[i, SIZE]
            need += columns[i, MOST]
        starts[i] = pos
        pos += size
        if pos > end:
            return BAD, 0
        ends[i] = pos
    return pos, need


@part
def _same_key(buf: Bytes, key: Ints, s1: Ints, e1: Ints, s2: Ints, e2: Ints) -> bool:
    """Whether two images have the same key bytes. A table without a key is its whole row: never the same."""
    for k in key:
        if e1[k] - s1[k] != e2[k] - s2[k]:
            return False
        for i in range(e1[k] - s1[k]):
            if buf[s1[k] + i] != buf[s2[k] + i]:
                return False
    return len(key) > 0


@part
def _put_head(head: Bytes, seqno: np.int64, micros: np.int64) -> tuple[int, int]:
    """`,<seqno>,` and `,<committed>,,` of a transaction: where each ends."""
    head[0] = _COMMA
    middle = put_unsigned(head, 1, np.uint64(seqno))
    head[middle] = _COMMA
    middle += 1
    head[middle] = _COMMA
    tail = put_instant(head, middle + 1, micros // 1000000)
    tail = put_fraction(head, tail, micros % 1000000, 6)
    head[tail] = _COMMA
    head[tail + 1] = _COMMA
    return middle, tail + 2


@part
def _put_row(
    out: Bytes,
    at: int,
    letter: np.uint8,
    row_offset: np.int64,
    head: Bytes,
    middle: int,
    tail: int,
    buf: Bytes,
    starts: Ints,
    ends: Ints,
    columns: Ints,
    label_ends: Ints,
    labels: Bytes,
    tables: Codes,
    stack: Ints,
    limit: int,
    state: Ints,
) -> int:
    """One staged line; BAD with the column noted, or NO_ROOM for JSON that would pass `limit`."""
    out[at] = letter
    at += 1
    for i in range(middle):
        out[at + i] = head[i]
    at = put_unsigned(out, at + middle, np.uint64(row_offset))
    for i in range(middle, tail):
        out[at + i - middle] = head[i]
    at += tail - middle
    for i in range(len(columns)):
        if i:
            out[at] = _COMMA
            at += 1
        if ends[i] == _ABSENT:
            out[at] = _N[0]
            out[at + 1] = _N[1]
            at += 2
        else:
            op, size, x, y = columns[i, OP], columns[i, SIZE], columns[i, X], columns[i, Y]
            at = put_value(out, at, limit, buf, starts[i], ends[i], op, size, x, y, label_ends, labels, tables, stack)
            if at < 0:
                state[COLUMN] = i
                return at
    out[at] = _NEWLINE
    return at + 1


@part
def _rows_start(buf: Bytes, pos: int, end: int, kind: np.uint8, count: int) -> tuple[int, int]:
    """Where the first row image of an event starts (BAD: damaged), and a status."""
    pos += 19 + 8
    if kind >= 30:
        if pos + 2 > end:
            return BAD, DAMAGED
        pos += max(2, np.int64(little(buf, pos, 2)))
    pos, width = packed_length(buf, pos, end)
    if pos == BAD or width != count:
        return BAD, DAMAGED
    bitmaps = 2 if kind == 24 or kind == 31 else 1
    size = (count + 7) // 8
    if pos + bitmaps * size > end:
        return BAD, DAMAGED
    for b in range(bitmaps):
        for i in range(count):
            if not (buf[pos + b * size + (i >> 3)] >> np.uint8(i & 7) & 1):
                return BAD, PARTIAL_IMAGE
    return pos + bitmaps * size, DONE


@kernel(
    "int64(uint8[::1], int64, int64[::1], int64[::1], uint8[::1], int64[::1], int64[::1], int64[::1],"
    " int64[:,::1], int64[::1], int64[::1], uint8[::1], uint16[::1], int64[:,::1],"
    " int64[:,::1], uint8[::1], uint8[::1], int64[::1])"
)
def stage_rows(
    buf: Bytes,
    base: int,
    offsets: Ints,
    sizes: Ints,
    kinds: Bytes,
    seqnos: Ints,
    begins: Ints,
    commits: Ints,
    columns: Ints,
    key: Ints,
    label_ends: Ints,
    labels: Bytes,
    tables: Codes,
    spans: Ints,
    stack: Ints,
    head: Bytes,
    out: Bytes,
    state: Ints,
) -> int:
    """Append the staged lines of row events to `out`, from state[EVENT] and state[AT] on; a status.

    buf[0] is byte `base` of the file. Of each event: `offsets` in the file, `sizes` without checksum, type, seqno of
    its transaction, the offset where that begins, and its commit time in microseconds. `spans` (4, columns), `stack`
    (jsonb.STACK) and `head` (HEAD bytes) are scratch.
    After NO_ROOM the caller empties `out` (or enlarges it, when it was empty) and calls again.
    """
    count = len(columns)
    s1, e1, s2, e2 = spans[0], spans[1], spans[2], spans[3]
    at = state[OUT]
    while state[EVENT] < len(offsets):
        event = state[EVENT]
        kind = kinds[event]
        start = offsets[event] - base
        end = start + sizes[event]
        pos, status = _rows_start(buf, start, end, kind, count)
        if pos == BAD:
            return status
        if state[AT]:
            pos = start + state[AT]
        middle, tail = _put_head(head, seqnos[event], commits[event])
        origin = begins[event] - base
        update = kind == 24 or kind == 31
        delete = kind == 25 or kind == 32
        while pos < end:
            state[AT] = pos - start
            first = pos
            need2 = 0
            pos, need = _measure(buf, pos, end, columns, s1, e1)
            second = pos
            if pos != BAD and update:
                pos, need2 = _measure(buf, pos, end, columns, s2, e2)
            if pos == BAD:
                return DAMAGED
            limit = len(out) - SLACK - need - need2
            if at > limit:
                return NO_ROOM
            line = at
            if update:
                split = state[EVERY_UPDATE] == 1 or not _same_key(buf, key, s1, e1, s2, e2)
                if split:
                    line = _put_row(
                        out, line, _D, first - origin, head, middle, tail,
                        buf, s1, e1, columns, label_ends, labels, tables, stack, limit, state,
                    )  # fmt: skip
                if line >= 0:
                    line = _put_row(
                        out, line, _I if split else _U, second - origin, head, middle, tail,
                        buf, s2, e2, columns, label_ends, labels, tables, stack, limit, state,
                    )  # fmt: skip
            else:
                line = _put_row(
                    out, line, _D if delete else _I, first - origin, head, middle, tail,
                    buf, s1, e1, columns, label_ends, labels, tables, stack, limit, state,
                )  # fmt: skip
            if line < 0:
                return BAD_VALUE if line == BAD else NO_ROOM
            at = line
            state[OUT] = at
            if not update:
                state[DELETES if delete else INSERTS] += 1
            elif split:
                state[DELETES] += 1
                state[INSERTS] += 1
            else:
                state[UPDATES] += 1
        state[AT] = 0
        state[EVENT] += 1
    return DONE
