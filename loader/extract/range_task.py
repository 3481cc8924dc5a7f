"""Extracting one range in a Spark task: its windows in order, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.events.statement import LogStatement
from loader.binlog.format import LogFormat
from loader.binlog.index import error_place
from loader.binlog.stager import Stager, Timing
from loader.binlog.table_registry import TableRegistry
from loader.errors import BinlogFormatError
from loader.extract.accounting.accounts import LEFT_OUT, UNREADABLE, count_events, count_skipped
from loader.extract.gtids.marks import GtidTally
from loader.extract.gtids.skipped_transactions import SkipRule
from loader.extract.log_ranges import LogRange, whole_segment
from loader.extract.range_result import RangeResult
from loader.extract.repair.incomplete_tables import find_incomplete_tables
from loader.extract.repair.unlogged_cascades import UnloggedCascades
from loader.extract.window_notes import Notes
from loader.extract.windows import Window, counted_bytes, read_windows
from loader.extract.xa.prepared_groups import Release
from loader.model.table import NO_VERSIONS, SchemaVersion, TableName, Versions
from loader.reader.files.file_header import head_of
from loader.reader.files.log_files import lognum_of
from loader.reader.files.log_walk import FIRST, LogBytes, log_bytes
from loader.staging.documents import Plan
from loader.staging.filters import CapturedTables
from loader.staging.layout import interval_folder
from loader.staging.parts import PartWriter
from loader.store.base import Store
from loader.transport.base import Transport

Ints = NDArray[np.int64]
VersionsOf = Callable[[TableName], Sequence[SchemaVersion]]


class RangeExtractor:
    """Extracts ranges of one plan into the folder of one attempt.

    `versions`: schemas of tables that the log does not describe completely.
    """

    _isolates = True
    _in_chain = True

    def __init__(
        self,
        plan: Plan,
        attempt: str,
        transport: Transport,
        store: Store,
        versions: Versions = NO_VERSIONS,
    ) -> None:
        self._plan = plan
        self._attempt = attempt
        self._transport = transport
        self._store = store
        self._versions = versions
        self._skipping = SkipRule(plan)
        self._cascades = UnloggedCascades(plan)
        self._folder = interval_folder(plan.source, plan.generation, plan.start_seqno)

    def extract(self, span: LogRange) -> RangeResult:
        """Stage the parts of the range.

        Raises:
            LoaderError: from codec, transport or store. No file of a failed part is visible.
        """
        plan = self._plan
        result = RangeResult(file=span.file)
        byte_range = counted_bytes(span, plan.part_bytes)
        with self._transport.open(span.file, span.read_from, span.read_to) as file:
            log = log_bytes(file, span.file)
            stager = self._stager(span, log.form)
            tally = GtidTally(log.form.mariadb)
            notes = self._notes(log, span, stager.registry)
            with _Parts(stager, self._writer, result) as parts:
                cut_off = self._cut_off(span, log.form, result)
                for window in read_windows(log, span, stager.registry, plan.part_bytes, cut_off):
                    skipped = self._skipping.of(log, window.index.transactions)
                    timing = stager.timing(window.index.transactions)
                    rows = count_events(result, window, skipped, stager.registry, byte_range)
                    rows = self._read(result, stager, self._chosen(rows), timing)
                    result.row_events_staged += len(rows)
                    self._cascades.note(result, window, skipped.why, timing.seqnos, byte_range, stager.registry)
                    if not window.more:
                        tally.add(log, window, *byte_range)
                    for note in notes.of(window, skipped.why, byte_range):
                        if isinstance(note, LogStatement):
                            result.statements.append(note)
                        else:
                            result.xa.append(note)
                    self._stage(log, window, rows, timing, parts)
            self._leave_out(result, stager, prepared=False)
            result.gtids, result.mark = tally.parts(), tally.mark(log)
            if span.read_from == FIRST:
                result.before = str(head_of(log, span.read_to).before or "")
                result.started = log.form.end + notes.unit if log.form.started else 0
        return result

    def survey(self, span: LogRange) -> RangeResult:
        """Return the statements of a range and its tables without column names. Nothing is staged.

        Raises:
            LoaderError: as `extract`.
        """
        result = RangeResult(file=span.file)
        byte_range = counted_bytes(span, self._plan.part_bytes)

        def met(name: TableName) -> Sequence[SchemaVersion]:
            result.nameless.add(name)
            return (SchemaVersion(0, "", None),)

        with self._transport.open(span.file, span.read_from, span.read_to) as file:
            log = log_bytes(file, span.file)
            registry = self._registry(log.form, met)
            cut_off = self._cut_off(span, log.form, result)
            notes = self._notes(log, span, registry)
            for window in read_windows(log, span, registry, self._plan.part_bytes, cut_off):
                why = self._skipping.of(log, window.index.transactions).why
                found = notes.of(window, why, byte_range)
                result.statements += [note for note in found if isinstance(note, LogStatement)]
        return result

    def release(self, run: Sequence[Release]) -> RangeResult:
        """Stage held groups of one log file as a separate part.

        Raises:
            LoaderError: as `extract`, or a group is no longer at its place.
        """
        name, first, end = run[0].file, run[0].start, run[-1].end
        span = whole_segment(name, lognum_of(name), first, end, self._plan.part_bytes)
        seqnos = {release.start: release.seqno for release in run}
        missing = set(seqnos)
        result = RangeResult(file=name)
        with self._transport.open(name, first, end) as file:
            log = log_bytes(file, name)
            stager = self._stager(span, log.form)
            notes = self._notes(log, span, stager.registry)
            with _Parts(stager, self._writer, result) as parts:
                parts.begin(f"{span.lognum:06d}-xa-{first:012d}")
                for window in read_windows(log, span, stager.registry, self._plan.part_bytes):
                    timing, chosen = _released(window, run)
                    missing.difference_update(timing.begins[timing.seqnos > 0].tolist())
                    rows = self._read(result, stager, self._chosen(chosen), timing)
                    result.row_events_staged += len(rows)
                    result.statements += notes.released(window, seqnos)
                    self._cascades.note_released(result, window, timing.seqnos, stager.registry)
                    for block, base, piece in window.holding(log, rows):
                        stager.stage(block, base, piece, timing)
            self._leave_out(result, stager, prepared=True)
        if missing:
            raise BinlogFormatError(
                "a prepared XA transaction is no longer at its position in the log", file=name, position=min(missing)
            )
        return result

    def _read(self, result: RangeResult, stager: Stager, rows: Ints, timing: Timing) -> Ints:
        """Return captured row events with their programs. Row events with unknown columns are counted and dropped."""
        if not len(rows):
            return rows
        with error_place(result.file, int(rows[0, w.R_EVENT])):
            rows = stager.registry.assign_programs(rows, timing.seqnos)
        known: NDArray[np.bool_] = rows[:, w.R_TABLE] != w.UNSTAGED
        if known.all():
            return rows
        count_skipped(result, LEFT_OUT, int((~known).sum()))
        return rows[known]

    def _leave_out(self, result: RangeResult, stager: Stager, *, prepared: bool) -> None:
        """Note the incomplete tables, and count the row events that the stager left out."""
        unstaged = stager.registry.unstaged
        result.left_out = find_incomplete_tables(self._plan, result.file, unstaged, prepared=prepared)
        if stager.left_out:
            result.row_events_staged -= stager.left_out
            count_skipped(result, UNREADABLE, stager.left_out)

    def _notes(self, log: LogBytes, span: LogRange, registry: TableRegistry) -> Notes:
        return Notes(log, span, registry, (span.lognum + self._plan.shift) * 10**12)

    def _stager(self, span: LogRange, form: LogFormat) -> Stager:
        plan = self._plan
        registry = self._registry(form, self._versions.of, self._versions.named)
        return Stager(registry, span.file, span.lognum, form.checksum, plan.shift, plan.both_images, lambda *_: None)

    def _registry(self, form: LogFormat, versions: VersionsOf, named: VersionsOf = lambda _: ()) -> TableRegistry:
        plan = self._plan
        return TableRegistry(
            CapturedTables(plan.tables),
            mariadb=form.mariadb,
            known=plan.known().get,
            versions=versions,
            named_versions=named,
            hex_fallback=plan.hex_fallback,
            markers=plan.skip.markers(),
            watched=self._cascades.parents,
            ignore_sequences=True,
            isolate=self._isolates,
        )

    def _cut_off(self, span: LogRange, form: LogFormat, result: RangeResult) -> Callable[[int, int], None] | None:
        """Return a callback that accepts a file that ends inside a transaction, or None where that is an error.

        After a crash, MariaDB leaves the file unfinished and begins the next one. The GTIDs at the
        start of the next file prove that nothing committed is missing. MySQL truncates the file. See "Crash recovery"
        in both manuals.
        """
        if not form.mariadb or span.file == self._plan.interval.stop.file:
            return None
        first, end = counted_bytes(span, self._plan.part_bytes)

        def note(place: int, torn: int) -> None:
            if self._transport.size(span.file) != span.read_to:
                raise BinlogFormatError("a range ends inside a transaction", file=span.file, position=place)
            result.bytes_cut_off += span.read_to - place if first <= place < end else 0
            result.bytes_torn += span.read_to - torn if first <= torn < end else 0

        return note

    def _writer(self, name: str) -> PartWriter:
        return PartWriter(self._store, self._folder, self._attempt, name)

    def _chosen(self, rows: Ints) -> Ints:
        """Return the captured row events to stage: all of them."""
        return rows

    def _stage(self, log: LogBytes, window: Window, rows: Ints, timing: Timing, parts: _Parts) -> None:
        if not len(rows):
            return
        numbers = rows[:, w.R_EVENT] // self._plan.part_bytes
        for mine in np.split(rows, np.flatnonzero(np.diff(numbers)) + 1):
            number = int(mine[0, w.R_EVENT]) // self._plan.part_bytes
            parts.begin(f"{parts.stager.lognum:06d}-{number:06d}")
            for block, base, run in window.holding(log, mine):
                with self._naming_the_cure():
                    parts.stager.stage(block, base, run, timing)

    @contextmanager
    def _naming_the_cure(self) -> Iterator[None]:
        """Add to the error of a row event that its transaction can be skipped. Its other events are not damaged."""
        try:
            yield
        except BinlogFormatError as error:
            if self._in_chain and {"file", "position"} <= error.where.keys():
                error.hint += f"; or skip it: loader skip {error.where['file']}:{error.where['position']} --reason TEXT"
            raise


def _released(window: Window, run: Sequence[Release]) -> tuple[Timing, Ints]:
    """Return seqnos and commit times of a window's groups (0: not released), and the row events of released groups."""
    by_start = {release.start: release for release in run}
    begins = np.ascontiguousarray(window.index.transactions[:, w.T_START])
    found = [by_start.get(start) for start in begins.tolist()]
    seqnos = np.array([release.seqno if release else 0 for release in found], np.int64)
    commits = np.array([release.committed if release else 0 for release in found], np.int64)
    rows = window.index.rows
    chosen = (seqnos[rows[:, w.R_TRANSACTION]] > 0) & (rows[:, w.R_TABLE] >= 0)
    return Timing(seqnos, begins, commits), rows[chosen]


class _Parts:
    """The part that is being written. Row events come in log order, so each part is opened and closed once."""

    def __init__(self, stager: Stager, writer: Callable[[str], PartWriter], result: RangeResult) -> None:
        self.stager = stager
        self._writer = writer
        self._result = result
        self._name = ""
        self._stack = ExitStack()

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._end()
        else:
            self._stack.__exit__(kind, error, trace)

    def begin(self, name: str) -> None:
        """Switch to the part with this name."""
        if name == self._name:
            return
        self._end()
        self._name = name
        self._open = self._stack.enter_context(self._writer(name))
        self.stager.write = self._open.write
        self.stager.counts = {}

    def _end(self) -> None:
        if not self._name:
            return
        self._name = ""
        self._stack.close()
        for schema, counts in self.stager.counts.items():
            operations = (counts.inserts, counts.updates, counts.deletes)
            self._result.files.append(self._open.staged(schema, operations, (counts.min_seqno, counts.max_seqno)))
            self._result.schemas[schema.schema_id] = schema
