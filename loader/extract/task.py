"""Extracting one range: walk it, then stage its row events part by part. Runs in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.constants import HEADER, event_name
from loader.binlog.format import HEAD_BYTES, LogFormat, read_format
from loader.binlog.index import LogIndex, Walk, placed
from loader.binlog.registry import TableRegistry
from loader.binlog.stager import Stager, Timing
from loader.binlog.statement import LogStatement, read_statement
from loader.errors import BinlogFormatError, UnsupportedError
from loader.extract.result import RangeResult
from loader.extract.span import LogRange
from loader.staging.documents import Plan, StagedFile
from loader.staging.filters import Captured
from loader.staging.layout import interval_folder
from loader.staging.parts import PartWriter
from loader.store.base import Store
from loader.transport.base import LogFile, Transport

Block = NDArray[np.uint8]

_BLOCK = 8 * 1024 * 1024


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
        registry = TableRegistry(Captured(self._plan.tables))
        with self._transport.open(span.file, span.read_from, span.read_to) as log:
            form = format_of(log, span.file)
            index = index_range(log, span, form, registry, self._plan.part_bytes)
            result = self._account(span, index)
            result.statements = list(self._statements(log, span, form, index))
            stager = self._stager(span, form, registry)
            for part in range(span.first_part, span.end_part):
                self._stage_part(log, stager, index, part, result)
        return result

    def _stager(self, span: LogRange, form: LogFormat, registry: TableRegistry) -> Stager:
        plan = self._plan
        every = plan.update_rows == "both"
        return Stager(registry, span.file, span.lognum, form.checksum, plan.shift, every, lambda *_: None)

    def _account(self, span: LogRange, index: LogIndex) -> RangeResult:
        first, end = _counted(span, self._plan.part_bytes)
        starts = index.transactions[:, w.T_START]
        offsets = index.rows[:, w.R_OFFSET]
        mine = (offsets >= first) & (offsets < end)
        captured = index.rows[:, w.R_TABLE] != w.UNCAPTURED
        self._refuse_rolled_back(span, index, captured)
        return RangeResult(
            event_types={event_name(n): int(index.counts[n]) for n in range(256) if index.counts[n]},
            bytes=int(index.counts[256]),
            transactions=int(((starts >= first) & (starts < end)).sum()),
            row_events=int(mine.sum()),
            row_events_staged=int((mine & captured).sum()),
        )

    def _refuse_rolled_back(self, span: LogRange, index: LogIndex, captured: NDArray[np.bool_]) -> None:
        undone = index.transactions[index.rows[:, w.R_TRANSACTION], w.T_ROLLED_BACK] == 1
        if (undone & captured).any():
            raise UnsupportedError(
                "a group that ends in ROLLBACK carries rows of a captured table",
                why="a table of an engine without transactions was changed inside a transaction that was rolled back",
                hint="convert the table to InnoDB and load it again, or exclude it",
                file=span.file,
                position=int(index.rows[undone & captured][0, w.R_OFFSET]),
            )

    def _statements(self, log: LogFile, span: LogRange, form: LogFormat, index: LogIndex) -> Iterator[LogStatement]:
        first, end = _counted(span, self._plan.part_bytes)
        unit = (span.lognum + self._plan.shift) * 10**12
        for offset, size, transaction in index.statements:
            if first <= offset < end:
                log.seek(int(offset) + HEADER)
                body = _exactly(log, int(size) - HEADER, span.file)
                seqno = int(index.transactions[transaction, w.T_END]) + unit
                with placed(span.file, int(offset)):
                    yield read_statement(body, seqno, f"{span.file}:{offset}", form.mariadb)

    def _stage_part(self, log: LogFile, stager: Stager, index: LogIndex, part: int, result: RangeResult) -> None:
        offsets = index.rows[:, w.R_OFFSET]
        size = self._plan.part_bytes
        rows = index.rows[(offsets >= part * size) & (offsets < (part + 1) * size)]
        rows = rows[rows[:, w.R_TABLE] != w.UNCAPTURED]
        if not len(rows):
            return
        timing = stager.timing(index.transactions)
        stager.counts = {}
        name = f"{stager.lognum:06d}-{part:06d}"
        with PartWriter(self._store, self._folder, self._attempt, name) as writer:
            stager.write = writer.write
            for chunk in _chunks(rows):
                base = int(chunk[0, w.R_OFFSET])
                end = int(chunk[-1, w.R_OFFSET] + chunk[-1, w.R_SIZE])
                log.seek(base)
                stager.stage(_block(log, end - base, stager.file), base, chunk, timing)
        result.files += _staged(stager, writer, rows, timing)
        result.schemas |= {schema.schema_id: schema for schema in stager.counts}


def format_of(log: LogFile, file: str) -> LogFormat:
    """The format of an open log file."""
    log.seek(0)
    return read_format(log.read(HEAD_BYTES) or b"", file)


def index_range(log: LogFile, span: LogRange, form: LogFormat, registry: TableRegistry, part_bytes: int) -> LogIndex:
    """Walk the range in blocks.

    Raises:
        BinlogFormatError: damage, or ends that are no transaction boundaries.
    """
    walk = Walk(registry, span.file, span.read_from, form.checksum, _counted(span, part_bytes))
    log.seek(span.read_from)
    buffer = np.empty(_BLOCK, np.uint8)
    kept = 0
    while walk.position < span.read_to:
        left = span.read_to - walk.position - kept
        if kept == len(buffer):
            buffer = np.concatenate([buffer, np.empty(len(buffer), np.uint8)])
        got = log.readinto(buffer.data[kept : kept + min(left, len(buffer) - kept)]) if left else 0
        if not got:
            raise BinlogFormatError(
                "the interval does not end where an event does" if kept else "the log ends before the interval",
                hint="positions must be transaction boundaries",
                file=span.file,
                position=walk.position,
            )
        used = walk.feed(buffer[: kept + got])
        kept = kept + got - used
        buffer[:kept] = buffer[used : used + kept].copy()
    return walk.finish()


def _counted(span: LogRange, part_bytes: int) -> tuple[int, int]:
    """The bytes whose events this range accounts for."""
    return span.first_part * part_bytes, span.end_part * part_bytes


def _chunks(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Runs of row events that span about a block of log, or one larger event."""
    at = 0
    while at < len(rows):
        limit = rows[at, w.R_OFFSET] + _BLOCK
        end = max(at + 1, int(np.searchsorted(rows[:, w.R_OFFSET] + rows[:, w.R_SIZE], limit, "right")))
        yield rows[at:end]
        at = end


def _block(log: LogFile, size: int, file: str) -> Block:
    block = np.empty(size, np.uint8)
    at = 0
    while at < size:
        got = log.readinto(block.data[at:])
        if not got:
            raise BinlogFormatError("the log became shorter while it was read", file=file)
        at += got
    return block


def _exactly(log: LogFile, size: int, file: str) -> bytes:
    return _block(log, size, file).tobytes()


def _staged(stager: Stager, writer: PartWriter, rows: NDArray[np.int64], timing: Timing) -> Iterator[StagedFile]:
    schemas = [program.schema for program in stager.registry.programs]
    for schema, counts in stager.counts.items():
        numbers = [n for n, other in enumerate(schemas) if other == schema]
        seqnos = timing.seqnos[rows[np.isin(rows[:, w.R_TABLE], numbers), w.R_TRANSACTION]]
        yield writer.staged(
            schema, (counts.inserts, counts.updates, counts.deletes), (int(seqnos.min()), int(seqnos.max()))
        )
