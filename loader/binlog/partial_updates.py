"""PARTIAL_UPDATE_ROWS events log JSON documents as diffs. This module turns them into UPDATE_ROWS with whole documents.

Format: MySQL's `rpl_record.cc`. Between the two images of an update are its options (a length-encoded integer, 1: there
are diffs) and one bit per JSON column of the table. Where the bit is set, the image after holds the length of the diffs
and the diffs (`json_diff.cc`). Servers log this only with binlog_row_value_options=PARTIAL_JSON, so plain Python is
fast enough.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.byte_cursor import Cursor
from loader.binlog.constants import HEADER, PARTIAL_UPDATE_ROWS, UPDATE_ROWS
from loader.binlog.index import error_place
from loader.binlog.program import Program
from loader.binlog.values.json_tree import apply_diffs, read_tree, write_tree
from loader.binlog.values.operations import JSON, OP, PREFIX, SIZE
from loader.errors import BinlogFormatError, UnsupportedError

Ints = NDArray[np.int64]
Bits = list[bool]

_JSON_LENGTH = 4


def is_partial(rows: Ints) -> NDArray[np.bool_]:
    """Return which of the row events (fields walk.R_*) are PARTIAL_UPDATE_ROWS, as a bool array."""
    found: NDArray[np.bool_] = rows[:, w.R_KIND] == PARTIAL_UPDATE_ROWS
    return found


def expand_partial_updates(
    block: NDArray[np.uint8], base: int, rows: Ints, program: Program, file: str, *, raw: bool = False
) -> tuple[NDArray[np.uint8], Ints]:
    """Turn PARTIAL_UPDATE_ROWS events into UPDATE_ROWS events of one row each, which keep their row offsets.

    Args:
        block: bytes of the log that hold the events.
        base: offset of block[0].
        rows: the events, fields walk.R_*.
        program: of their table.
        file: name of the log file in errors.
        raw: put a diff whose document is not in the log in place of the new document. A diff is never valid JSON.

    Returns:
        The bytes of the new events, and their index (fields walk.R_*; R_OFFSET counts in these bytes).

    Raises:
        BinlogFormatError: an event is damaged, or a diff does not fit its document.
        UnsupportedError: the image before the update lacks the document that a diff changes.
    """
    out, found = bytearray(), []
    for row in rows:
        start = int(row[w.R_OFFSET]) - base
        with error_place(file, int(row[w.R_EVENT]), table=program.schema.name):
            event = _Event(block[start : start + int(row[w.R_SIZE])].tobytes(), program, raw)
            for place, images in event.updates():
                whole = row.copy()
                whole[w.R_OFFSET], whole[w.R_KIND] = len(out), UPDATE_ROWS
                out += event.head + images
                whole[w.R_SIZE] = len(event.head) + len(images)
                # Row offset = R_OFFSET + R_LEAD + place of the image in the event - first byte of the transaction.
                whole[w.R_LEAD] += int(row[w.R_OFFSET]) + place - (int(whole[w.R_OFFSET]) + len(event.head))
                found.append(whole)
    return np.frombuffer(out or bytearray(1), np.uint8), np.array(found, np.int64).reshape(len(found), rows.shape[1])


class _Event:
    """Parses one PARTIAL_UPDATE_ROWS event, without checksum.

    Attributes:
        head: header and fields of the UPDATE_ROWS event with the same columns: its bytes before the row images.
    """

    def __init__(self, data: bytes, program: Program, raw: bool) -> None:
        self._raw = raw
        self._columns = program.columns.tolist()
        self._documents = sum(column[OP] == JSON for column in self._columns)
        self._names = [column.name for column in program.schema.columns]
        self._cursor = cursor = Cursor(data)
        cursor.take(HEADER + 8)
        cursor.take(max(cursor.number(2), 2) - 2)
        count = cursor.length_encoded()
        if count != len(self._columns):
            raise BinlogFormatError("a PARTIAL_UPDATE_ROWS event does not fit its table map")
        self._before, self._after = (_bits(cursor.take((count + 7) // 8), count) for _ in range(2))
        self.head = data[:4] + bytes([UPDATE_ROWS]) + data[5 : cursor.offset]

    def updates(self) -> Iterator[tuple[int, bytes]]:
        """Yield for each row the offset of its first image in the event, and both images with whole documents."""
        cursor = self._cursor
        while cursor.remaining:
            place = cursor.offset
            before = self._image(self._before)
            first = cursor.data[place : cursor.offset]
            options = cursor.length_encoded()
            if options > 1:
                raise UnsupportedError(
                    f"row value options {options} of an update are not supported",
                    hint="SET GLOBAL binlog_row_value_options='', and use no other value in any session",
                )
            count = self._documents
            partial = _bits(cursor.take((count + 7) // 8), count) if options else [False] * count
            nulls = cursor.offset
            after = self._image(self._after)
            size = (sum(self._after) + 7) // 8
            yield place, first + cursor.data[nulls : nulls + size] + self._whole_values(before, after, partial)

    def _image(self, present: Bits) -> list[bytes | None]:
        """Return the values of an image, each with its length prefix; None for NULL and for absent columns."""
        cursor = self._cursor
        nulls = iter(_bits(cursor.take((sum(present) + 7) // 8), sum(present)))
        return [self._value(n) if there and not next(nulls) else None for n, there in enumerate(present)]

    def _value(self, n: int) -> bytes:
        cursor, start = self._cursor, self._cursor.offset
        prefix, size = self._columns[n][PREFIX], self._columns[n][SIZE]
        cursor.take(cursor.number(prefix) if prefix else size)
        return cursor.data[start : cursor.offset]

    def _whole_values(self, before: list[bytes | None], after: list[bytes | None], partial: Bits) -> bytes:
        """Return the values of the image after the update, with whole documents."""
        diffs = iter(partial)
        values = []
        for n, value in enumerate(after):
            is_diff = self._columns[n][OP] == JSON and next(diffs)
            values.append(self._whole_document(n, before[n], value) if is_diff and value is not None else value)
        return b"".join(value for value in values if value is not None)

    def _whole_document(self, n: int, before: bytes | None, diffs: bytes) -> bytes:
        if before is None and self._raw:
            return diffs
        if before is None:
            raise UnsupportedError(
                "a partial update of a JSON column lacks the document before the update",
                why="binlog_row_value_options=PARTIAL_JSON with binlog_row_image other than FULL",
                hint="SET GLOBAL binlog_row_image=FULL, or SET GLOBAL binlog_row_value_options=''",
                column=self._names[n],
            )
        document = write_tree(apply_diffs(read_tree(before[_JSON_LENGTH:]), diffs[_JSON_LENGTH:]))
        return len(document).to_bytes(_JSON_LENGTH, "little") + document


def _bits(data: bytes, count: int) -> Bits:
    return [bool(data[n >> 3] >> (n & 7) & 1) for n in range(count)]
