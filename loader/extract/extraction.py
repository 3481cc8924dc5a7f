"""Extracting an interval: split it, extract its ranges and released XA groups in parallel, publish the manifest."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from loader.errors import UsageError
from loader.extract.checkpoint import find_log_difference
from loader.extract.gtids.file_order import check_times
from loader.extract.interval_schemas import IntervalSchemas
from loader.extract.log_ranges import LogRange, whole_segment
from loader.extract.manifest_writer import build_manifest
from loader.extract.range_result import RangeResult
from loader.extract.repair.backfill import attempt_with_all_given, backfill, plans_and_manifests, with_skips
from loader.extract.repair.reextract import ReextractResult, combine_results, compare_manifests
from loader.extract.repair.restore import find_lost_files, restore_files
from loader.extract.spec import ExtractResult, ExtractSpec, RestoreResult, TransportSettings, result_of
from loader.extract.xa.outcomes import plan_releases, settle_groups
from loader.extract.xa.prepared_groups import Release
from loader.model.table import NO_VERSIONS, TableName, Versions
from loader.source.continuity import log_replaced_error
from loader.spark.workers import Workers
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest, Plan
from loader.staging.schemas import SchemaStore
from loader.store.base import Store
from loader.store.local import NoStore
from loader.store.registry import open_store
from loader.transport.base import Transport

if TYPE_CHECKING:
    from loader.extract.range_task import RangeExtractor

_Piece = TypeVar("_Piece")


def extract(workers: Workers, spec: ExtractSpec) -> ExtractResult:
    """Stage the interval, or report that it is staged already. Tables that intervals had left out are backfilled.

    Raises:
        Superseded: a newer generation continues before the stop of the interval.
        LoaderError: from a range, a statement or the store. Nothing is published then.
    """
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    plan = chain.require_plan(spec.generation, spec.start_seqno)
    attempt = partial(_run_attempt, workers, chain, spec, spec.staging_root)
    existing = chain.manifest(spec.generation, spec.start_seqno)
    if existing:
        some = existing.left_out and backfill(chain, spec.generation, spec.start_seqno, attempt)
        return result_of(chain.manifest(spec.generation, spec.start_seqno) or existing, "staged" if some else "already")
    chain.check_not_superseded(spec.generation, plan.stop_seqno)
    mine = attempt_with_all_given(chain, with_skips(chain, plan), attempt)
    published = chain.publish(mine)
    own = published.canonical() == mine.canonical()  # its keys contain the name of the attempt
    return result_of(published, "staged" if own else "already")


def reextract(workers: Workers, spec: ExtractSpec) -> ReextractResult:
    """Extract a staged interval again without storing anything, and compare it with its manifest.

    Raises:
        LoaderError: the interval is not staged, or its log cannot be read any more.
    """
    chain, staged = _staged(spec)
    attempt = partial(_run_attempt, workers, chain, spec, "")
    return combine_results([compare_manifests(published, attempt(plan, published.given)) for plan, published in staged])


def restore(workers: Workers, spec: ExtractSpec) -> RestoreResult:
    """Restore the lost or changed files of a staged interval from another extraction.

    Raises:
        LoaderError: the interval is not staged, its log cannot be read any more, or the extraction differs from the
            manifest.
    """
    chain, staged = _staged(spec)
    store, files = open_store(spec.staging_root), 0
    for plan, published in staged:
        if lost := find_lost_files(store, published):
            repeated = _run_attempt(workers, chain, spec, spec.staging_root, plan, published.given)
            restore_files(store, published, repeated, lost)
            files += len(lost)
    return RestoreResult(start_seqno=spec.start_seqno, files=files)


def _staged(spec: ExtractSpec) -> tuple[PlanChain, list[tuple[Plan, Manifest]]]:
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    plan = chain.require_plan(spec.generation, spec.start_seqno)
    published = chain.extracted_manifest(spec.generation, spec.start_seqno)
    if published is None:
        raise UsageError(
            "the interval is not staged, so there is nothing to compare with",
            hint=f"loader extract --interval {spec.start_seqno}",
            interval=spec.start_seqno,
        )
    return chain, plans_and_manifests(chain, plan, published)


def _run_attempt(
    workers: Workers, chain: PlanChain, spec: ExtractSpec, root: str, plan: Plan, given: tuple[str, ...]
) -> Manifest:
    """Return the manifest of a new attempt. Its files go to `root`; an empty root discards them."""
    before = chain.checkpoint(chain.require_generation(spec.generation), plan.interval.start)
    transport = spec.transport
    segments = transport.open().segments(plan.interval)  # first: to find_log_difference a truncated log looks replaced
    if difference := find_log_difference(transport.open(), before):
        raise log_replaced_error(before.position, difference)
    if transport.kind == "file" or transport.archive:  # a server itself has no older files of the same names
        check_times(transport.open(), segments)
    tasks = _Tasks(workers, plan, transport, root)
    ranges = split_interval(plan, transport, workers.count)
    schemas = IntervalSchemas(SchemaStore(chain.store, spec.source), plan, before, given)
    results = [] if before.nameless else tasks.extract(ranges)
    nameless = before.nameless or any(result.nameless for result in results)
    if nameless:
        surveyed = tasks.survey(ranges)
        nameless = any(result.nameless for result in surveyed)
        tasks = tasks.with_versions(schemas.versions(surveyed))
        results = tasks.extract(ranges)
    if corrected := schemas.corrected_versions(results, tasks.versions):
        tasks = tasks.with_versions(tasks.versions.with_tables(corrected))
        results = tasks.extract(ranges)
    settled = settle_groups(plan, before.held, transport.open(), results)
    released = []
    if held := plan_releases(plan, settled):
        # The tables in held groups are unknown, because any earlier interval can have prepared them.
        released = replace(tasks, versions=schemas.all_versions(results)).release(held)
    after = schemas.after(results, released, nameless=nameless, keep=bool(root))
    return build_manifest(plan, before, segments, results, settled, released, after)


@dataclass(frozen=True)
class _Tasks:
    """The work of an attempt. `versions`: schemas of tables that the log does not describe completely."""

    workers: Workers
    plan: Plan
    transport: TransportSettings
    root: str
    versions: Versions = NO_VERSIONS
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    def with_versions(self, versions: Versions) -> _Tasks:
        """Return another attempt that knows these schemas."""
        return _Tasks(self.workers, self.plan, self.transport, self.root, versions)

    def extract(self, ranges: Sequence[LogRange]) -> list[RangeResult]:
        """Stage ranges."""
        return self._each(ranges, _extract_range)

    def survey(self, ranges: Sequence[LogRange]) -> list[RangeResult]:
        """Find the statements of ranges, and the tables without column names."""
        return self._each(ranges, _survey_range)

    def release(self, runs: Sequence[list[Release]]) -> list[RangeResult]:
        """Stage held groups."""
        return self._each(runs, _release)

    def _each(
        self, pieces: Sequence[_Piece], work: Callable[[RangeExtractor, _Piece], RangeResult]
    ) -> list[RangeResult]:
        plan, attempt, transport, root, versions = self.plan, self.attempt, self.transport, self.root, self.versions

        def task(piece: _Piece) -> RangeResult:
            from loader.extract.range_task import RangeExtractor

            return work(RangeExtractor(plan, attempt, transport.open(), _store(root), versions), piece)

        return self.workers.each(task, pieces)


def split_interval(plan: Plan, transport: TransportSettings, pieces: int) -> list[LogRange]:
    """Return the ranges of an interval: one per log file over the network or on S3, or whole parts of local files."""
    source = transport.open()
    found: list[LogRange] = []
    for file, begin, end in source.segments(plan.interval):
        if begin == end:
            continue
        segment = whole_segment(file, int(file.rpartition(".")[2]), begin, end, plan.part_bytes)
        if transport.at_hand and segment.end_part - segment.first_part > 1 and pieces > 1:
            found += _split(segment, plan, source, pieces)
        else:
            found.append(segment)
    return found


def _split(segment: LogRange, plan: Plan, source: Transport, pieces: int) -> list[LogRange]:
    # Not at the top: the codec compiles or loads its kernels on import, and only a driver that splits needs them.
    from loader.extract.range_cutting import cut_segment
    from loader.reader.files.log_walk import log_bytes

    with source.open(segment.file, segment.read_from, segment.read_to) as log:
        return list(cut_segment(log_bytes(log, segment.file), segment, plan.part_bytes, pieces))


def _extract_range(extractor: RangeExtractor, span: LogRange) -> RangeResult:
    # Not at the top: the driver does not need the codec.
    from loader.binlog.events.table_map import NamelessTable

    try:
        return extractor.extract(span)
    except NamelessTable as error:
        return RangeResult(file=span.file, nameless={TableName.parse(error.where["table"])})


def _survey_range(extractor: RangeExtractor, span: LogRange) -> RangeResult:
    return extractor.survey(span)


def _release(extractor: RangeExtractor, run: list[Release]) -> RangeResult:
    return extractor.release(run)


def _store(root: str) -> Store:
    return open_store(root) if root else NoStore()
