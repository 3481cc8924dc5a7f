r"""A stager for listings: it also writes values that staging refuses, as a mark and the hex of their bytes.

The mark is that of bytes that are no text of their character set: a quoted field that begins with `\x`. A
listing's registry has `hex_fallback`, so only values of other types come here: a JSON diff without its document, a
number of an ENUM without a label.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loader.binlog import rows as k
from loader.binlog.events.table_map import old_format_error
from loader.binlog.partial_updates import expand_partial_updates
from loader.binlog.program import Program
from loader.binlog.stager import Stager, Timing
from loader.binlog.values.operations import HEX, MOST, OP, PREFIX, SIZE
from loader.binlog.walk import R_EVENT, R_SIZE

Ints = NDArray[np.int64]

_HEAD_FIELDS = 5
_FIELD = re.compile(rb'(?:"(?:[^"]|"")*"|[^,"\n]*)[,\n]')


class ListingStager(Stager):
    """Writes every value, if need be as hex, and rows whose images do not identify them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.any_image = True

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
        spans = np.empty((4, len(columns)), np.int64)
        found = np.zeros(k.STATE, np.int64)
        while True:
            found[:] = 0
            for name in (k.AT, k.EVERY_UPDATE, k.ANY_IMAGE, k.LOWEST, k.HIGHEST):
                found[name] = state[name]
            status = self._call(block, base, row, readable, timing, spans, found)
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
