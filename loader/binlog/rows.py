"""The row kernel: it turns row events of one table into staged lines, without a Python object per row.

Format of a rows event: MySQL internals, "Rows_event". After the 19-byte header: table id 6, flags 2; in version 2 the
length of extra data 2 (it counts itself) and the extra data; the number of columns; a bitmap of the columns present
(two for an update); row images. A row image is a bitmap of NULLs and the values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loader.binlog.native.buffer import BAD, Bytes
from loader.binlog.native.compiler import kernel, part
from loader.binlog.native.memory import load64, store64
from loader.binlog.values.binary_json import SLACK
from loader.binlog.values.codepoints import Codes
from loader.binlog.values.compressed_columns import room_of
from loader.binlog.values.digits import little, packed_length, put_fraction, put_hex, put_instant, put_unsigned
from loader.binlog.values.field import put_value
from loader.binlog.values.operations import COMPRESSED, MOST, OP, PREFIX, SIZE, X, Y
from loader.binlog.walk import R_KIND, R_LEAD, R_OFFSET, R_SIZE, R_TRANSACTION

Ints = NDArray[np.int64]

DONE, NO_ROOM, DAMAGED, BAD_VALUE, PARTIAL_IMAGE = range(5)
"""Statuses of the kernel.

DONE: all row events are written.
NO_ROOM: the output block is full.
DAMAGED: a row ends behind its event, or the number of columns differs.
BAD_VALUE: a value is not valid for its type.
PARTIAL_IMAGE: a row image lacks key columns, or any column if the table has no key.
"""

EVENT, AT, OUT, INSERTS, UPDATES, DELETES, COLUMN, EVERY_UPDATE, LOWEST, HIGHEST, ANY_IMAGE, ROW_END = range(12)
"""The kernel's state.

EVENT: index of the next row event.
AT: offset of the next row in that event; 0 for the first row.
OUT: bytes in the output block.
INSERTS, UPDATES, DELETES: staged records written.
COLUMN: column of the invalid value.
EVERY_UPDATE: 1 to write every update as a delete and an insert.
LOWEST, HIGHEST: lowest and highest seqno written.
ANY_IMAGE: 1 to accept row images that do not identify their rows.
ROW_END: offset in the event of the end of the row with the invalid value.
"""

STATE = 12

_NULL, _ABSENT = -1, -2  # instead of the end of a value
HEAD = 96
_LINE = 192
_COMMA = np.uint8(44)
_NEWLINE = np.uint8(10)
_I, _U, _D = np.uint8(73), np.uint8(85), np.uint8(68)
_N = np.frombuffer(b"\\N", np.uint8).copy()


@part
def _is_in(buf: Bytes, bitmap: int, i: int) -> bool:
    return buf[bitmap + (i >> 3)] >> np.uint8(i & 7) & 1 != 0


@part
def _measure(buf: Bytes, pos: int, end: int, bitmap: int, columns: Ints, starts: Ints, ends: Ints) -> tuple[int, int]:
    """Find the values of a row image: their `starts` and `ends` (_NULL or _ABSENT instead of an end).

    Return the position behind the image (BAD if it ends behind the event) and the bytes that its text can need.
    `bitmap`: position of the bitmap of the columns in the image, -1 if it has all columns. The length of JSON text is
    not known before: JSON may use the room that is left.
    """
    count = len(columns)
    need = _LINE
    inside = count
    if bitmap >= 0:
        inside = 0
        need += count
        for i in range(count):
            inside += _is_in(buf, bitmap, i)
    nulls = pos
    nth = 0
    pos += (inside + 7) // 8
    if pos > end:
        return BAD, 0
    for i in range(count):
        starts[i] = pos
        if bitmap >= 0 and not _is_in(buf, bitmap, i):
            ends[i] = _ABSENT
            need += 3
            continue
        null = _is_in(buf, nulls, nth)
        nth += 1
        if null:
            ends[i] = _NULL
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
def _complete(s1: Ints, e1: Ints, s2: Ints, e2: Ints) -> None:
    """Copy the columns that only the image before the update has into the image after it: they did not change."""
    for i in range(len(e2)):
        if e2[i] == _ABSENT:
            s2[i], e2[i] = s1[i], e1[i]


@part
def _has_columns(buf: Bytes, bitmap: int, count: int) -> bool:
    for i in range(count):
        if _is_in(buf, bitmap, i):
            return True
    return False


@part
def _fit(buf: Bytes, before: int, after: int, update: bool, key: Ints, count: int, any_image: bool) -> int:
    """Check that the images of an event identify their rows, or only have columns (`any_image`); return a status.

    The bitmaps decide, not the values: an image without columns has no bytes, so its rows cannot be counted.
    """
    if any_image:
        return DONE if _has_columns(buf, after if update else before, count) else DAMAGED
    if len(key) == 0:
        for i in range(count):
            if not _is_in(buf, before, i):
                return PARTIAL_IMAGE
    for k in key:
        if not _is_in(buf, before, k):
            return PARTIAL_IMAGE
    return DAMAGED if update and not _has_columns(buf, after, count) else DONE


@part
def _same_key(buf: Bytes, key: Ints, spans: Ints) -> bool:
    """Return whether two images have the same key bytes; False for a table without a key."""
    s1, e1, s2, e2 = spans[0], spans[1], spans[2], spans[3]
    for k in key:
        if e1[k] - s1[k] != e2[k] - s2[k]:
            return False
        for i in range(e1[k] - s1[k]):
            if buf[s1[k] + i] != buf[s2[k] + i]:
                return False
    return len(key) > 0


@part
def _images(
    buf: Bytes, pos: int, end: int, before: int, after: int, update: bool, columns: Ints, spans: Ints
) -> tuple[int, int, int]:
    """Measure the image at `pos`, and for an update the image after it (into the second half of `spans`).

    `before`, `after`: positions of their bitmaps, -1 for images with all columns. Return the position of the second
    image, the position behind the row (BAD if the row ends behind its event), and the bytes that its text can need.
    """
    pos, need = _measure(buf, pos, end, before, columns, spans[0], spans[1])
    second = pos
    if pos != BAD and update:
        pos, more = _measure(buf, pos, end, after, columns, spans[2], spans[3])
        need += more
    if pos != BAD and after >= 0 and update:
        _complete(spans[0], spans[1], spans[2], spans[3])
        need += need
    return second, pos, need


@part
def _put_head(head: Bytes, seqno: np.int64, micros: np.int64) -> tuple[int, int]:
    """Write `,<seqno>,` and `,<committed>,` of a transaction to `head`; return where each ends."""
    head[0] = _COMMA
    middle = put_unsigned(head, 1, np.uint64(seqno))
    head[middle] = _COMMA
    middle += 1
    head[middle] = _COMMA
    tail = put_instant(head, middle + 1, micros // 1000000)
    tail = put_fraction(head, tail, micros % 1000000, 6)
    head[tail] = _COMMA
    return middle, tail + 1


@part
def _put_words(out: Bytes, at: int, head: Bytes, start: int, end: int) -> int:
    """Copy head[start:end] in words of 8 bytes. The next field overwrites the up to 7 bytes written behind it."""
    for i in range(start, end, 8):
        store64(out, at + i - start, load64(head, i))
    return at + end - start


@part
def _put_absent(out: Bytes, at: int, ends: Ints, follows: bool) -> int:
    """Write the bitmap of the absent columns as hex; nothing for an image with all columns.

    The first column has the lowest bit. The bit after the last column (`follows`) says that the staged record before
    belongs to the same update: it has the values of the absent columns.
    """
    whole = True
    for i in range(len(ends)):
        whole = whole and ends[i] != _ABSENT
    if whole:
        return at
    for first in range(0, len(ends) + follows, 8):
        byte = np.uint8(0)
        for i in range(first, min(first + 8, len(ends))):
            if ends[i] == _ABSENT:
                byte |= np.uint8(1) << np.uint8(i - first)
        if follows and len(ends) - first < 8:
            byte |= np.uint8(1) << np.uint8(len(ends) - first)
        at = put_hex(out, at, byte)
    return at


@part
def _put_row(
    out: Bytes,
    at: int,
    letter: np.uint8,
    follows: bool,
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
    """Write one staged line. Return BAD and set state[COLUMN] for an invalid value, NO_ROOM for JSON beyond `limit`."""
    out[at] = letter
    at += 1
    at = _put_words(out, at, head, 0, middle)
    at = put_unsigned(out, at, np.uint64(row_offset))
    at = _put_words(out, at, head, middle, tail)
    at = _put_absent(out, at, ends, follows)
    for i in range(len(columns)):
        out[at] = _COMMA
        at += 1
        if ends[i] < 0:
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
def _put_change(
    out: Bytes, at: int, update: bool, delete: bool, split: bool, before: np.int64, after: np.int64,
    head: Bytes, middle: int, tail: int, buf: Bytes, spans: Ints, columns: Ints,
    label_ends: Ints, labels: Bytes, tables: Codes, stack: Ints, limit: int, state: Ints,
) -> int:  # fmt: skip
    """Write the lines of a changed row: two if an update is split, else one. Return as _put_row.

    `before`, `after`: row offsets of the images.
    """
    if split or not update:
        at = _put_row(
            out, at, _D if split or delete else _I, False, before, head, middle, tail,
            buf, spans[0], spans[1], columns, label_ends, labels, tables, stack, limit, state,
        )  # fmt: skip
    if update and at >= 0:
        at = _put_row(
            out, at, _I if split else _U, split, after, head, middle, tail,
            buf, spans[2], spans[3], columns, label_ends, labels, tables, stack, limit, state,
        )  # fmt: skip
    return at


@part
def _count(state: Ints, update: bool, delete: bool, split: bool) -> None:
    state[INSERTS] += split or not (update or delete)
    state[DELETES] += split or delete
    state[UPDATES] += update and not split


@part
def _rows_start(buf: Bytes, pos: int, end: int, kind: np.uint8, count: int) -> tuple[int, int, int]:
    """Return the position of the first row image of an event, or BAD for a damaged event.

    Also return the positions of the column bitmaps of the images before and after; -1, -1 if no column is absent.
    """
    pos += 19 + 8
    if kind >= 30:
        if pos + 2 > end:
            return BAD, -1, -1
        pos += max(2, np.int64(little(buf, pos, 2)))
    pos, width = packed_length(buf, pos, end)
    bitmaps = 2 if kind == 24 or kind == 31 else 1
    size = (count + 7) // 8
    if pos == BAD or width != count or pos + bitmaps * size > end:
        return BAD, -1, -1
    start = pos + bitmaps * size
    for b in range(bitmaps):
        for i in range(count):
            if not _is_in(buf, pos + b * size, i):
                return start, pos, start - size
    return start, -1, -1


@kernel(
    "int64(uint8[::1], int64, int64[:,::1], int64[::1], int64[::1], int64[::1],"
    " int64[:,::1], int64[::1], int64[::1], uint8[::1], uint16[::1], int64[:,::1],"
    " int64[:,::1], uint8[::1], uint8[::1], int64[::1], int64[::1])"
)
def stage_rows(
    buf: Bytes, base: int, rows: Ints, seqnos: Ints, begins: Ints, commits: Ints,
    columns: Ints, key: Ints, label_ends: Ints, labels: Bytes, tables: Codes,
    spans: Ints, stack: Ints, head: Bytes, out: Bytes, ends: Ints, state: Ints,
) -> int:  # fmt: skip
    """Append the staged lines of row events to `out`, from state[EVENT] and state[AT] on; return a status.

    After NO_ROOM the caller empties `out`, or enlarges it if it was empty, and calls again.

    Args:
        buf: the block of the log.
        base: offset in the file of buf[0].
        rows: the row events, fields walk.R_*.
        seqnos: seqno of each transaction.
        begins: file offset of the first byte of each transaction.
        commits: commit time of each transaction, microseconds since 1970.
        columns: the table's program; see program.Program, as for `key`, `label_ends`, `labels` and `tables`.
        key: indexes of the key columns.
        label_ends: see Program.
        labels: see Program.
        tables: see Program.
        spans: scratch (4, columns).
        stack: scratch of shape binary_json.STACK.
        head: scratch of HEAD bytes.
        out: the output block.
        ends: gets the position in `out` behind the last line of each row event.
        state: the kernel's state.
    """
    at = state[OUT]
    while state[EVENT] < len(rows):
        event = state[EVENT]
        kind, which = np.uint8(rows[event, R_KIND]), rows[event, R_TRANSACTION]
        start = rows[event, R_OFFSET] - base
        end = start + rows[event, R_SIZE]
        pos, before, after = _rows_start(buf, start, end, kind, len(columns))
        if pos == BAD:
            return DAMAGED
        update, delete = kind == 24 or kind == 31, kind == 25 or kind == 32
        if before >= 0 and not (state[ANY_IMAGE] == 1 and pos == end):
            status = _fit(buf, before, after, update, key, len(columns), state[ANY_IMAGE] == 1)
            if status != DONE:
                return status
        pos = start + state[AT] if state[AT] else pos
        middle, tail = _put_head(head, seqnos[which], commits[which])
        origin = begins[which] - rows[event, R_LEAD] - base
        state[LOWEST] = min(state[LOWEST], seqnos[which])
        state[HIGHEST] = max(state[HIGHEST], seqnos[which])
        while pos < end:
            state[AT], first = pos - start, pos
            second, pos, need = _images(buf, pos, end, before, after, update, columns, spans)
            if pos == BAD:
                return DAMAGED
            limit = len(out) - SLACK - need
            if at > limit:
                return NO_ROOM
            split = update and (state[EVERY_UPDATE] == 1 or not _same_key(buf, key, spans))
            line = _put_change(
                out, at, update, delete, split, first - origin, second - origin, head, middle, tail,
                buf, spans, columns, label_ends, labels, tables, stack, limit, state,
            )  # fmt: skip
            if line < 0:
                state[ROW_END] = pos - start
                return BAD_VALUE if line == BAD else NO_ROOM
            at = state[OUT] = line
            _count(state, update, delete, split)
        state[AT] = 0
        ends[event] = at
        state[EVENT] += 1
    return DONE
