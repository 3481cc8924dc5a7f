"""Turns indexed row events into staged lines: table by table, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loader.binlog import rows as k
from loader.binlog import walk as w
from loader.binlog.constants import event_name
from loader.binlog.partial_updates import expand_partial_updates, is_partial
from loader.binlog.program import Program, why_not_text
from loader.binlog.table_registry import TableRegistry, UnstagedRow
from loader.binlog.values.binary_json import STACK
from loader.binlog.values.operations import HEXED, OP
from loader.errors import LOAD_ALL_AGAIN, BinlogFormatError, DataError, UnsupportedError
from loader.model.table import TableSchema

Ints = NDArray[np.int64]

HEX_HINT = '; or set undecodable = "hex" for the source'
_OUT_BYTES = 8 * 1024 * 1024
_OUT_MOST = 4 * 1024 * 1024 * 1024
_NO_SEQNO = 2**63 - 1


@dataclass
class Counts:
    """Number of staged records by operation, and their lowest and highest seqno."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    min_seqno: int = 0
    max_seqno: int = 0


@dataclass(frozen=True)
class Timing:
    """Three values per transaction of an index, as int64 arrays.

    Attributes:
        seqnos: its seqno.
        begins: file offset of its first byte.
        commits: its commit time, microseconds since 1970.
    """

    seqnos: Ints
    begins: Ints
    commits: Ints


Write = Callable[[TableSchema, memoryview], object]


@dataclass
class Stager:
    """Stages row events of one log file.

    Attributes:
        registry: the tables and their programs.
        file: name of the log file in errors.
        lognum: number of the log file.
        checksum: bytes of checksum at the end of each event, 4 or 0.
        shift: the generation's offset of log numbers.
        every_update: write each update as a delete and an insert.
        write: gets each full block of a table's lines.
        counts: the staged records of each table.
        left_out: number of row events that could not be staged, of tables that the registry isolates.
        any_image: accept row images that do not identify their rows: for listings only.
    """

    registry: TableRegistry
    file: str
    lognum: int
    checksum: int
    shift: int
    every_update: bool
    write: Write
    counts: dict[TableSchema, Counts] = field(default_factory=dict)
    left_out: int = 0
    any_image: bool = False

    def __post_init__(self) -> None:
        self._out = np.empty(_OUT_BYTES, np.uint8)
        self._stack = np.empty(STACK, np.int64)
        self._head = np.empty(k.HEAD, np.uint8)
        self._newest_error: DataError | None = None

    def take_error(self) -> DataError | None:
        """Return why the newest event that was left out cannot be staged, once; None where none was."""
        error, self._newest_error = self._newest_error, None
        return error

    def timing(self, transactions: Ints) -> Timing:
        """Return the seqno, start and commit time of each transaction (fields walk.T_*). A seqno is that of the end."""
        unit = (self.lognum + self.shift) * 10**12
        return Timing(
            transactions[:, w.T_END] + unit,
            np.ascontiguousarray(transactions[:, w.T_START]),
            np.ascontiguousarray(transactions[:, w.T_COMMITTED]),
        )

    def stage(self, block: NDArray[np.uint8], base: int, rows: Ints, timing: Timing) -> None:
        """Stage row events. Lines of one table and schema are written in log order.

        Args:
            block: bytes of the log that hold the row events.
            base: offset of block[0].
            rows: the row events, fields walk.R_*. `TableRegistry.assign_programs` must have given programs to those of
                tables without column names.
            timing: of their transactions.

        Raises:
            BinlogFormatError, UnsupportedError, DataError: with table, column and position.
        """
        captured = rows[:, w.R_TABLE] >= 0
        rows = rows if captured.all() else rows[captured]
        if not len(rows):
            return
        # Two table maps of one table can have equal schemas (only nullability differs): their rows keep the log order.
        numbers = self.registry.schema_numbers[rows[:, w.R_TABLE]]
        if numbers.min() != numbers.max():
            order = np.argsort(numbers, kind="stable")
            rows, numbers = rows[order], numbers[order]
        for run in _split(rows, numbers, rows[:, w.R_TABLE], is_partial(rows)):
            program = self.registry.programs[int(run[0, w.R_TABLE])]
            if is_partial(run[:1])[0]:
                for event in np.split(run, len(run)):
                    self._partial(block, base, event, program, timing)
            else:
                self.left_out += self._run(block, base, run, program, timing)

    def _partial(self, block: NDArray[np.uint8], base: int, event: Ints, program: Program, timing: Timing) -> None:
        try:
            whole, updates = self._expand_partial(block, base, event, program)
        except UnsupportedError as error:
            self._note_unstaged(error, event[0], program, timing)
            self.left_out += 1
        else:
            self.left_out += self._run(whole, 0, updates, program, timing) > 0

    def _expand_partial(
        self, block: NDArray[np.uint8], base: int, event: Ints, program: Program
    ) -> tuple[NDArray[np.uint8], Ints]:
        return expand_partial_updates(block, base, event, program, self.file)

    def _run(self, block: NDArray[np.uint8], base: int, rows: Ints, program: Program, timing: Timing) -> int:
        """Stage row events of one table; return how many could not be staged."""
        left_out = 0
        state = np.zeros(k.STATE, np.int64)
        state[[k.EVERY_UPDATE, k.LOWEST, k.ANY_IMAGE]] = self.every_update, _NO_SEQNO, self.any_image
        spans, ends = np.empty((4, len(program.columns)), np.int64), np.empty(len(rows), np.int64)
        while True:
            status = self._call(block, base, rows, program, timing, spans, ends, state)
            filled = int(state[k.OUT])
            if filled:
                self.write(program.schema, self._out.data[:filled])
                state[k.OUT] = 0
            if status == k.DONE:
                break
            if status != k.NO_ROOM:
                left_out += self._pass_over(status, block, base, rows, program, timing, state)
            elif not filled:
                self._grow()
        if state[[k.INSERTS, k.UPDATES, k.DELETES]].any():
            self._count(program.schema, state)
        return left_out

    def _call(
        self,
        block: NDArray[np.uint8],
        base: int,
        rows: Ints,
        program: Program,
        timing: Timing,
        spans: Ints,
        ends: Ints,
        state: Ints,
    ) -> int:
        """Run the kernel; return its status."""
        return k.stage_rows(
            block,
            base,
            rows,
            timing.seqnos,
            timing.begins,
            timing.commits,
            program.columns,
            program.key,
            program.label_ends,
            program.labels,
            program.tables,
            spans,
            self._stack,
            self._head,
            self._out,
            ends,
            state,
        )

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
        """Continue after the event or row that the kernel refused. Return the number of events that are left out."""
        event = rows[int(state[k.EVENT])]
        return self._skip_event(self._error(status, event, program, state), event, program, timing, state)

    def _skip_event(self, error: DataError, event: Ints, program: Program, timing: Timing, state: Ints) -> int:
        """Leave out the event that the kernel refused and go to the next one. Return 1: one event is left out."""
        self._note_unstaged(error, event, program, timing)
        state[[k.EVENT, k.AT]] = state[k.EVENT] + 1, 0
        return 1

    def _count(self, schema: TableSchema, state: Ints) -> None:
        counts = self.counts.setdefault(schema, Counts(min_seqno=_NO_SEQNO))
        counts.min_seqno = min(counts.min_seqno, int(state[k.LOWEST]))
        counts.max_seqno = max(counts.max_seqno, int(state[k.HIGHEST]))
        counts.inserts += int(state[k.INSERTS])
        counts.updates += int(state[k.UPDATES])
        counts.deletes += int(state[k.DELETES])

    def _grow(self) -> None:
        if len(self._out) >= _OUT_MOST:
            raise DataError("a row is larger than 4 GiB as staged text", file=self.file)
        self._out = np.empty(2 * len(self._out), np.uint8)

    def _note_unstaged(self, error: DataError, event: Ints, program: Program, timing: Timing) -> None:
        """Note that a row event is not staged. A damaged event is an error of the whole log."""
        if isinstance(error, BinlogFormatError):
            raise error
        seqno = int(timing.seqnos[event[w.R_TRANSACTION]])
        self._newest_error = error
        self.registry.note_unstaged(
            program.schema.name, UnstagedRow(seqno, int(event[w.R_EVENT]), "", error, error.hint, alone=True)
        )

    def _error(self, status: int, event: Ints, program: Program, state: Ints) -> DataError:
        place: dict[str, Any] = {
            "file": self.file,
            "position": int(event[w.R_EVENT]),
            "table": program.schema.name,
        }
        if status == k.PARTIAL_IMAGE:
            return UnsupportedError(
                "a row image leaves out columns that identify its row",
                why="the table has no primary key, or the row image is damaged",
                hint="SET GLOBAL binlog_row_image=FULL, and use no other value in any session",
                **place,
            )
        if status == k.BAD_VALUE:
            column = program.schema.columns[int(state[k.COLUMN])]
            hexed = bool(program.columns[int(state[k.COLUMN]), OP] >= HEXED)
            return DataError(
                f"a value is not a {column}" + (f" in {column.charset}" if column.charset else ""),
                why=why_not_text(column, program.schema.key, hex_fallback=hexed),
                hint="look at the row with mysqlbinlog -vv, and fix it at the source"
                + (HEX_HINT if column.charset and not hexed else ""),
                **place,
                column=column.name,
            )
        return BinlogFormatError(
            f"a {event_name(int(event[w.R_KIND]))} event does not fit its table map",
            hint=f"compare with mysqlbinlog -vv; restore the file or {LOAD_ALL_AGAIN}",
            **place,
        )


def _split(rows: Ints, *keys: NDArray[Any]) -> list[Ints]:
    """Split rows into runs in which every key is constant."""
    changed = np.zeros(len(rows) - 1, np.bool_)
    for key in keys:
        changed |= key[1:] != key[:-1]
    return np.split(rows, np.flatnonzero(changed) + 1) if changed.any() else [rows]
