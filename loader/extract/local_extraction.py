"""Staging a range of log into a local folder without Spark, in several threads.

The kernels release the GIL. One thread cuts the log into ranges of whole parts. It looks only at the bytes around part
boundaries, so nothing waits for a scan of the whole file. With one thread, a file is one range.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from loader.binlog import walk as w
from loader.binlog.format import LogFormat
from loader.binlog.listing_stager import ListingStager
from loader.binlog.stager import Stager
from loader.binlog.table_registry import TableRegistry
from loader.errors import UsageError
from loader.extract.accounting.accounts import LEFT_OUT, UNREADABLE
from loader.extract.log_ranges import LogRange, whole_segment
from loader.extract.range_cutting import cut_segment
from loader.extract.range_result import RangeResult
from loader.extract.range_task import RangeExtractor, VersionsOf
from loader.extract.xa.outcomes import plan_releases, settle_groups
from loader.extract.xa.prepared_groups import missing_rows_error
from loader.model.identity import Identity
from loader.model.position import Position
from loader.model.table import TableName, TableSchema
from loader.reader.dialect import UNREADABLE as UNREADABLE_FIELD
from loader.reader.files.index_transport import ListedTransport
from loader.reader.files.log_files import ListedFile, LogFiles
from loader.reader.files.window import opened
from loader.reader.known_schemas import Known, knows_nothing
from loader.spark.allocator import keep_memory
from loader.staging.documents import Plan, TableFilter
from loader.staging.filters import CapturedTables
from loader.staging.parts import PartWriter
from loader.store.local import LocalStore, NoStore
from loader.transport.base import Transport

Ints = NDArray[np.int64]
Progress = Callable[[int], object]

_KINDS = {"I": (23, 30), "U": (24, 31, 39), "D": (25, 32)}
_FOLDERS = 4  # of a key: source, generation, interval and attempt; a local staging has one of each


@dataclass(frozen=True)
class StagingOptions:
    """The selection of what is staged.

    Attributes:
        tables: shell patterns over `schema.table`; tables of the server's own schemas are never staged.
        operations: of row events: any of I, U and D.
        part_bytes: bytes of log per part. With several threads, each range is one part.
        threads: number of threads.
        known: schemas of tables that the log does not describe completely.
    """

    tables: tuple[str, ...] = ("*.*",)
    operations: str = "IUD"
    part_bytes: int = 64 * 1024 * 1024
    threads: int = 1
    known: Known = knows_nothing


@dataclass(frozen=True)
class LocalResult:
    """What the ranges gave.

    Attributes:
        unreadable_values: how many values are staged as hex since they could not be read.
        assumed: see TableRegistry.
    """

    ranges: list[RangeResult]
    unreadable_values: int = 0
    assumed: frozenset[TableName] = frozenset()


def stage(
    files: LogFiles,
    segments: Sequence[tuple[ListedFile, int, int]],
    folder: Path,
    wanted: StagingOptions,
    progress: Progress,
) -> LocalResult:
    """Stage segments of log into `<folder>/<schema>/<table>/<schema id>/`.

    Args:
        files: the log files.
        segments: file, first byte and end byte of each segment; both ends are transaction boundaries.
        folder: must be empty or absent.
        wanted: the selection.
        progress: called with the bytes of log of each staged range.

    Raises:
        LoaderError: from the extraction; earlier ranges may be staged by then.
        UsageError: the folder is not empty, or cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            "the output folder cannot be created", why=str(error), hint="choose another folder", folder=folder
        ) from error
    if any(folder.iterdir()):
        raise UsageError(
            "the output folder is not empty", hint="choose another folder, or empty this one", folder=folder
        )
    return _extracted(files, segments, _Flat(folder), wanted, progress)


def count(
    files: LogFiles, segments: Sequence[tuple[ListedFile, int, int]], wanted: StagingOptions, progress: Progress
) -> LocalResult:
    """Count what `stage` would stage, without writing anything.

    Raises:
        LoaderError: as `stage`.
    """
    return _extracted(files, segments, NoStore(), wanted, progress)


def count_records(staged: LocalResult) -> dict[str, Any]:
    """Return records and bytes by table name, and the numbers of transactions, statements and unreadable pieces.

    `unreadable_values` are staged as hex; `unreadable_row_events` are left out.
    """
    tables: dict[TableName, dict[str, Any]] = {}
    results = staged.ranges
    for file in (file for result in results for file in result.files):
        empty = {
            "schema": file.name.schema, "table": file.name.table, "inserts": 0, "updates": 0, "deletes": 0, "bytes": 0
        }  # fmt: skip
        found = tables.setdefault(file.name, empty)
        for name in ("inserts", "updates", "deletes", "bytes"):
            found[name] += getattr(file, name)
    return {
        "tables": [tables[name] for name in sorted(tables)],
        "transactions": sum(result.transactions for result in results),
        "statements": sum(len(result.statements) for result in results),
        "unreadable_values": staged.unreadable_values,
        "unreadable_row_events": sum(_left_out(result) for result in results),
    }


def count_rows(transport: Transport, begin: Position, end: Position) -> dict[TableName, tuple[int, int, int]]:
    """Return the numbers of inserted, updated and deleted rows of each table in one transaction.

    Raises:
        DataError: rows cannot be decoded.
    """
    file, wanted = ListedFile(begin.file, begin.lognum, end.logpos), StagingOptions()
    plan = _plan([(file, begin.logpos, end.logpos)], wanted)
    span = whole_segment(begin.file, begin.lognum, begin.logpos, end.logpos, wanted.part_bytes)
    found: dict[TableName, tuple[int, int, int]] = {}
    for one in _Extractor(plan, transport, NoStore(), wanted).extract(span).files:
        inserts, updates, deletes = found.get(one.name, (0, 0, 0))
        found[one.name] = (inserts + one.inserts, updates + one.updates, deletes + one.deletes)
    return found


def _left_out(result: RangeResult) -> int:
    return sum(result.row_events_skipped.get(reason, 0) for reason in (LEFT_OUT, UNREADABLE))


def _extracted(
    files: LogFiles,
    segments: Sequence[tuple[ListedFile, int, int]],
    store: LocalStore,
    wanted: StagingOptions,
    progress: Progress,
) -> LocalResult:
    results: list[RangeResult] = []
    pending: deque[tuple[LogRange, Future[RangeResult]]] = deque()

    def collect(most: int) -> None:
        while len(pending) > most:
            span, future = pending.popleft()
            results.append(future.result())
            progress(span.read_to - span.read_from)

    if not segments:
        return LocalResult(results)
    plan = _plan(segments, wanted)
    extractor = _Extractor(plan, ListedTransport(files), store, wanted)
    if wanted.threads > 1:
        keep_memory()
    with ThreadPoolExecutor(wanted.threads) as pool:
        try:
            for file, begin, end in segments:
                for span in _ranges(files, file, begin, end, wanted):
                    pending.append((span, pool.submit(extractor.extract, span)))
                    collect(2 * wanted.threads)
            collect(0)
            settled = settle_groups(plan, (), ListedTransport(files), results)
            if settled.lost:
                raise missing_rows_error(settled.lost[0])
            results += pool.map(extractor.release, plan_releases(plan, settled))
        finally:
            pool.shutdown(cancel_futures=True)
    assumed = frozenset(name for registry in extractor.registries for name in registry.assumed)
    return LocalResult(results, sum(writer.unreadable for writer in extractor.writers), assumed)


def _plan(segments: Sequence[tuple[ListedFile, int, int]], wanted: StagingOptions) -> Plan:
    """Return a plan for the fields that determine the staged bytes. The other fields have no effect here."""
    (first, begin, _), (last, _, end) = segments[0], segments[-1]
    base = first.name.removesuffix(f".{first.lognum:06d}")
    return Plan(
        source="log",
        generation="0",
        identity=Identity(kind="mysql", version="", server_id=0),
        start=str(Position(base, first.lognum, begin)),
        stop=str(Position(base, last.lognum, end)),
        shift=0,
        tables=TableFilter(include=wanted.tables),
        part_bytes=wanted.part_bytes,
    )


def _ranges(files: LogFiles, file: ListedFile, begin: int, end: int, wanted: StagingOptions) -> Iterator[LogRange]:
    """Return the segment as one range, or as ranges of one part each for several threads."""
    whole = whole_segment(file.name, file.lognum, begin, end, wanted.part_bytes)
    if wanted.threads == 1 or not files.at_hand or whole.end_part - whole.first_part == 1:
        yield whole
        return
    with opened(files, file) as log:
        yield from cut_segment(log, whole, wanted.part_bytes, wanted.threads)


class _Extractor(RangeExtractor):
    """Extracts the row events of some operations as a listing: also values that staging refuses."""

    _in_chain = False

    def __init__(self, plan: Plan, transport: Transport, store: LocalStore, wanted: StagingOptions) -> None:
        super().__init__(plan, "here", transport, store)
        self._kinds = [kind for letter in wanted.operations for kind in _KINDS[letter]]
        self._known = wanted.known
        self.writers: list[_CountingWriter] = []
        self.registries: list[TableRegistry] = []

    def _cut_off(self, *_: object) -> None:
        """Treat a file that ends inside a transaction as damaged: no GTIDs of a next file prove the opposite."""

    def _stager(self, span: LogRange, form: LogFormat) -> Stager:
        registry = self._registry(form, self._versions.of)
        return ListingStager(registry, span.file, span.lognum, form.checksum, 0, False, lambda *_: None)

    def _registry(self, form: LogFormat, versions: VersionsOf, named: VersionsOf = lambda _: ()) -> TableRegistry:
        registry = TableRegistry(
            CapturedTables(self._plan.tables),
            mariadb=form.mariadb,
            known=self._known,
            nameless=True,
            versions=versions,
            named_versions=named,
            hex_fallback=True,
            same_keys=True,
            ignore_sequences=True,
            isolate=True,
            whole_times=True,
        )
        self.registries.append(registry)
        return registry

    def _writer(self, name: str) -> PartWriter:
        self.writers.append(_CountingWriter(self._store, self._folder, self._attempt, name, hashed=False))
        return self.writers[-1]

    def _chosen(self, rows: Ints) -> Ints:
        every = len(self._kinds) == sum(map(len, _KINDS.values()))
        return rows if every else rows[np.isin(rows[:, w.R_KIND], self._kinds)]


class _CountingWriter(PartWriter):
    """Also counts the values that are written as hex since they could not be read."""

    unreadable = 0

    def write(self, schema: TableSchema, lines: memoryview) -> None:
        """See PartWriter."""
        self.unreadable += bytes(lines).count(UNREADABLE_FIELD)
        super().write(schema, lines)


class _Flat(LocalStore):
    """A folder of parts, sorted by table. Writes do not wait for the disk: a repeated run recreates the files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"file://{folder.resolve()}", durable=False)

    @contextmanager
    def writing(self, key: str) -> Iterator[BinaryIO]:
        """See Store."""
        with super().writing(key.split("/", _FOLDERS)[_FOLDERS]) as file:
            yield file
