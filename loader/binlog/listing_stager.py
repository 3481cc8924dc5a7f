r"""A stager for listings: it also writes values that staging refuses, as a mark and the hex of their bytes.

The mark is that of bytes that are no text of their character set: a quoted field that begins with `\x`. A
listing's registry has `hex_fallback`, so only values of other types come here: a JSON diff without its document, a
number of an ENUM without a label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loader.binlog import rows as k
from loader.binlog.events.table_map import old_format_error
from loader.binlog.partial_updates import expand_partial_updates, is_partial
from loader.binlog.program import Program
from loader.binlog.stager import Stager, Timing
from loader.binlog.values.operations import HEX, MOST, OP, PREFIX, SIZE
from loader.binlog.walk import R_EVENT, R_INNER, R_SIZE, R_TABLE

Ints = NDArray[np.int64]

_HEAD_FIELDS = 5
_FIELD = re.compile(rb'(?:"(?:[^"]|"")*"|[^,"\n]*)[,\n]')


@dataclass(frozen=True)
class StagedEvents:
    """Staged lines of row events.

    Attributes:
        lines: the lines, and other bytes.
        spans: int64 (row events + 1, 2): start and end of the lines of each event; -1 if it is not staged here.
    """

    lines: NDArray[np.uint8]
    spans: Ints


class ListingStager(Stager):
    """Writes every value, if need be as hex, and rows whose images do not identify them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.any_image = True

    def stage_events(self, block: NDArray[np.uint8], base: int, rows: Ints, timing: Timing) -> StagedEvents:
        """Stage the row events that can be staged in blocks; `stage` takes the others. Arguments as for `stage`.

        The next call overwrites the lines.
        """
        spans = np.full((len(rows) + 1, 2), -1, np.int64)
        plain = np.flatnonzero((rows[:, R_TABLE] >= 0) & (rows[:, R_INNER] == 0) & ~is_partial(rows))
        order = plain[np.argsort(rows[plain, R_TABLE], kind="stable")]
        tables = rows[order, R_TABLE]
        filled = 0
        for run in np.split(order, np.flatnonzero(tables[1:] != tables[:-1]) + 1) if len(order) else ():
            program = self.registry.programs[int(rows[run[0], R_TABLE])]
            filled, spans[run] = self._stage_whole(block, base, rows[run], program, timing, filled)
        return StagedEvents(self._out, spans)

    def _stage_whole(
        self, block: NDArray[np.uint8], base: int, rows: Ints, program: Program, timing: Timing, filled: int
    ) -> tuple[int, Ints]:
        """Append the lines of row events of one table. Return the bytes in the output block, and the events' spans."""
        state = np.zeros(k.STATE, np.int64)
        state[[k.EVERY_UPDATE, k.ANY_IMAGE, k.OUT]] = 1, 1, filled
        scratch, ends, refused = np.empty((4, len(program.columns)), np.int64), np.empty(len(rows), np.int64), []
        while (status := self._call(block, base, rows, program, timing, scratch, ends, state)) != k.DONE:
            event = int(state[k.EVENT])
            if status == k.NO_ROOM:
                lines = self._out
                self._grow()
                self._out[: len(lines)] = lines
                continue
            refused.append(event)
            ends[event] = ends[event - 1] if event else filled
            state[[k.OUT, k.EVENT, k.AT]] = ends[event], event + 1, 0
        spans = np.column_stack([np.concatenate([[filled], ends[:-1]]), ends])
        spans[refused] = -1
        return int(state[k.OUT]), spans

    def _expand_partial(
        self, block: NDArray[np.uint8], base: int, event: Ints, program: Program
    ) -> tuple[NDArray[np.uint8], Ints]:
        return expand_partial_updates(block, base, event, program, self.file, raw=True)

    def _pass_over(
        self,
        status: int,
        block: NDArray[np.uint8],
        base: int,
        rows: Ints,
        program: Program,
        timing: Timing,
        state: Ints,
    ) -> int:
        """Write a row with an invalid value as hex and continue after it. Leave out damaged events of an old format."""
        if status == k.DAMAGED and program.schema.name in self.registry.assumed:
            event = rows[int(state[k.EVENT])]
            error = old_format_error(program.schema.name, file=self.file, position=int(event[R_EVENT]))
            return self._skip_event(error, event, program, timing, state)
        if status != k.BAD_VALUE:
            return super()._pass_over(status, block, base, rows, program, timing, state)
        row = rows[int(state[k.EVENT])][None].copy()
        row[0, R_SIZE] = state[k.ROW_END]
        self._write_raw(block, base, row, program, timing, state)
        state[k.AT] = state[k.ROW_END]
        return 0

    def _write_raw(
        self, block: NDArray[np.uint8], base: int, row: Ints, program: Program, timing: Timing, state: Ints
    ) -> None:
        """Write one row with the columns as hex that the kernel refuses, one column after the other."""
        columns, raw = program.columns.copy(), set[int]()
        readable = replace(program, columns=columns)
        spans, ends = np.empty((4, len(columns)), np.int64), np.empty(1, np.int64)
        found = np.zeros(k.STATE, np.int64)
        while True:
            found[:] = 0
            for name in (k.AT, k.EVERY_UPDATE, k.ANY_IMAGE, k.LOWEST, k.HIGHEST):
                found[name] = state[name]
            status = self._call(block, base, row, readable, timing, spans, ends, found)
            if status == k.DONE:
                break
            if status == k.NO_ROOM:
                self._grow()
                continue
            column = int(found[k.COLUMN])
            if status != k.BAD_VALUE or column in raw:
                raise self._error(status, row[0], program, found)
            raw.add(column)
            columns[column] = _as_bytes(columns[column])
        self.write(program.schema, memoryview(marked(bytes(self._out.data[: int(found[k.OUT])]), raw)))
        self._count(program.schema, found)


def _as_bytes(column: Ints) -> Ints:
    """Return the program of a column that writes all values as hex."""
    found = np.zeros_like(column)
    found[OP], found[PREFIX] = HEX, column[PREFIX]
    found[SIZE] = 0 if column[PREFIX] else column[SIZE]
    found[MOST] = 2 if column[PREFIX] else 2 * column[SIZE] + 2
    return found


def marked(lines: bytes, columns: set[int]) -> bytes:
    """Return the staged lines with the mark before the hex of these columns."""
    found = []
    for line in lines.split(b"\n")[:-1]:
        for number, field in enumerate(_FIELD.findall(line + b"\n"), -_HEAD_FIELDS):
            found.append(b'"\\x' + field[1:] if number in columns and field.startswith(b'"') else field)
    return b"".join(found)
