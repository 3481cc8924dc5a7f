"""Extracting one range: its windows one after the other, part by part. Runs in a Spark task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import HEADER, event_name
from loader.binlog.format import LogFormat
from loader.binlog.index import LogIndex, placed
from loader.binlog.registry import TableRegistry
from loader.binlog.stager import Stager
from loader.binlog.statement import LogStatement, read_statement
from loader.errors import UnsupportedError
from loader.extract.blocks import Window, counted, format_of, windows
from loader.extract.result import RangeResult
from loader.extract.span import LogRange
from loader.staging.documents import Plan
from loader.staging.filters import Captured
from loader.staging.layout import interval_folder
from loader.staging.parts import PartWriter
from loader.store.base import Store
from loader.transport.base import LogFile, Transport

Ints = NDArray[np.int64]


class RangeExtractor:
    """Extracts ranges of one plan under one attempt's folder."""

    def __init__(self, plan: Plan, attempt: str, transport: Transport, store: Store) -> None:
        self._plan = plan
        self._attempt = attempt
        self._transport = transport
        self._store = store
        self._folder = interval_folder(plan.source, plan.generation, plan.start_seqno)

    def extract(self, span: LogRange) -> RangeResult:
        """Stage the range's parts.

        Raises:
            LoaderError: everything that codec, transport and store raise; nothing of a failed part is visible.
        """
        plan = self._plan
        result = RangeResult()
        with self._transport.open(span.file, span.read_from, span.read_to) as log:
            form = format_of(log, span.file)
            registry = TableRegistry(Captured(plan.tables), mariadb=form.mariadb)
            every = plan.update_rows == "both"
            stager = Stager(registry, span.file, span.lognum, form.checksum, plan.shift, every, lambda *_: None)
            with _Parts(stager, self._writer, result) as parts:
                for window in windows(log, span, form, registry, plan.part_bytes):
                    rows = self._account(span, window.index, result)
                    result.statements += self._statements(log, span, form, window)
                    self._stage(log, window, rows, form, parts)
        return result

    def _writer(self, name: str) -> PartWriter:
        return PartWriter(self._store, self._folder, self._attempt, name)

    def _account(self, span: LogRange, index: LogIndex, result: RangeResult) -> Ints:
        """Add a window to the range's accounts; its row events that are the range's and captured."""
        first, end = counted(span, self._plan.part_bytes)
        starts = index.transactions[:, w.T_START]
        offsets = index.rows[:, w.R_EVENT]
        mine = (offsets >= first) & (offsets < end)
        captured = index.rows[:, w.R_TABLE] != w.UNCAPTURED
        self._refuse_rolled_back(span, index, captured)
        for kind in np.flatnonzero(index.counts[:256]):
            name = event_name(int(kind))
            result.event_types[name] = result.event_types.get(name, 0) + int(index.counts[kind])
        rows: Ints = index.rows[mine & captured]
        result.bytes += int(index.counts[256])
        result.transactions += int(((starts >= first) & (starts < end)).sum())
        result.row_events += int(mine.sum())
        result.row_events_staged += len(rows)
        return rows

    def _refuse_rolled_back(self, span: LogRange, index: LogIndex, captured: NDArray[np.bool_]) -> None:
        undone = index.transactions[index.rows[:, w.R_TRANSACTION], w.T_ROLLED_BACK] == 1
        if (undone & captured).any():
            raise UnsupportedError(
                "a group that ends in ROLLBACK carries rows of a captured table",
                why="a table of an engine without transactions was changed inside a transaction that was rolled back",
                hint="convert the table to InnoDB and load it again, or exclude it",
                file=span.file,
                position=int(index.rows[undone & captured][0, w.R_EVENT]),
            )

    def _statements(self, log: LogFile, span: LogRange, form: LogFormat, window: Window) -> Iterator[LogStatement]:
        first, end = counted(span, self._plan.part_bytes)
        unit = (span.lognum + self._plan.shift) * 10**12
        for statement in window.index.statements:
            offset = int(statement[w.S_OFFSET])
            if first <= offset < end:
                body = window.statement(log, statement, span.file)[HEADER:]
                seqno = int(window.index.transactions[statement[w.S_TRANSACTION], w.T_END]) + unit
                with placed(span.file, offset):
                    yield read_statement(body, seqno, f"{span.file}:{offset}", form.mariadb)

    def _stage(self, log: LogFile, window: Window, rows: Ints, form: LogFormat, parts: _Parts) -> None:
        if not len(rows):
            return
        timing = parts.stager.timing(window.index.transactions)
        numbers = rows[:, w.R_EVENT] // self._plan.part_bytes
        for mine in np.split(rows, np.flatnonzero(np.diff(numbers)) + 1):
            parts.begin(int(mine[0, w.R_EVENT]) // self._plan.part_bytes)
            for block, base, run in window.holding(log, mine, form, parts.stager.file):
                parts.stager.stage(block, base, run, timing)


class _Parts:
    """The part being written. Row events come in the order of the log, so each part is begun and ended once."""

    def __init__(self, stager: Stager, writer: Callable[[str], PartWriter], result: RangeResult) -> None:
        self.stager = stager
        self._writer = writer
        self._result = result
        self._number = -1
        self._stack = ExitStack()

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._end()
        else:
            self._stack.__exit__(kind, error, trace)

    def begin(self, number: int) -> None:
        """Write to this part from now on."""
        if number == self._number:
            return
        self._end()
        self._number = number
        self._open = self._stack.enter_context(self._writer(f"{self.stager.lognum:06d}-{number:06d}"))
        self.stager.write = self._open.write
        self.stager.counts = {}

    def _end(self) -> None:
        if self._number < 0:
            return
        self._number = -1
        self._stack.close()
        for schema, counts in self.stager.counts.items():
            operations = (counts.inserts, counts.updates, counts.deletes)
            self._result.files.append(self._open.staged(schema, operations, (counts.min_seqno, counts.max_seqno)))
            self._result.schemas[schema.schema_id] = schema
