"""Extracting an interval: split it, extract its ranges and what it releases as Spark tasks, publish the manifest."""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession

from loader.errors import UsageError
from loader.extract.again import AgainResult, compared
from loader.extract.checkpoint import changed
from loader.extract.closing import manifest_of
from loader.extract.held import Release
from loader.extract.restoring import lost_of, put_back
from loader.extract.result import RangeResult
from loader.extract.settling import releases_of, settled_of
from loader.extract.span import LogRange, whole_segment
from loader.extract.spec import ExtractResult, ExtractSpec, RestoreResult, TransportSettings, result_of
from loader.job import carried
from loader.source.continuity import replaced
from loader.staging.chain import PlanChain
from loader.staging.documents import Manifest, Plan
from loader.store.base import Store
from loader.store.local import NoStore
from loader.store.opening import open_store
from loader.transport.base import Transport


def extract(spark: SparkSession, spec: ExtractSpec) -> ExtractResult:
    """Stage the interval, or report that it is staged.

    Raises:
        LoaderError: what a range, a statement or the store gave; nothing is published then.
    """
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    plan = chain.require_plan(spec.generation, spec.start_seqno)
    existing = chain.manifest(spec.generation, spec.start_seqno)
    if existing:
        return result_of(existing, "already")
    mine = _attempted(spark, chain, plan, spec, spec.staging_root)
    published = chain.publish(mine)
    own = published.canonical() == mine.canonical()  # names of the attempt are in it
    return result_of(published, "staged" if own else "already")


def again(spark: SparkSession, spec: ExtractSpec) -> AgainResult:
    """Extract a staged interval again without keeping a byte, and compare with what its manifest says.

    Raises:
        LoaderError: the interval is not staged, or its log cannot be read any more.
    """
    chain, plan, published = _staged(spec)
    return compared(published, _attempted(spark, chain, plan, spec, ""))


def restore(spark: SparkSession, spec: ExtractSpec) -> RestoreResult:
    """Put back the files of a staged interval that are lost or changed, as they were.

    Raises:
        LoaderError: the interval is not staged, its log cannot be read any more, or it comes out otherwise now.
    """
    chain, plan, published = _staged(spec)
    store = open_store(spec.staging_root)
    if lost := lost_of(store, published):
        put_back(store, published, _attempted(spark, chain, plan, spec, spec.staging_root), lost)
    return RestoreResult(start_seqno=spec.start_seqno, files=len(lost))


def _staged(spec: ExtractSpec) -> tuple[PlanChain, Plan, Manifest]:
    chain = PlanChain(open_store(spec.staging_root), spec.source)
    plan = chain.require_plan(spec.generation, spec.start_seqno)
    published = chain.manifest(spec.generation, spec.start_seqno)
    if published is None:
        raise UsageError(
            "the interval is not staged, so there is nothing to compare with",
            hint=f"loader extract --interval {spec.start_seqno}",
            interval=spec.start_seqno,
        )
    return chain, plan, published


def _attempted(spark: SparkSession, chain: PlanChain, plan: Plan, spec: ExtractSpec, root: str) -> Manifest:
    """The manifest of an attempt of its own, whose files go to that root; to nowhere without one."""
    before = chain.checkpoint(chain.require_generation(spec.generation), plan.interval.start)
    context, transport = spark.sparkContext, spec.transport
    transport.open().segments(plan.interval)  # raises where the log is cut here, which looks as if it was replaced
    if difference := changed(transport.open(), before):
        raise replaced(before.position, difference)
    ranges = ranges_of(plan, transport, context.defaultParallelism)
    attempt = uuid.uuid4().hex[:12]
    results = (
        context.parallelize(ranges, len(ranges))
        .map(lambda span: _extract_range(plan, attempt, transport, root, span))
        .collect()
    )
    settled = settled_of(plan, before.held, transport.open(), results)
    held = releases_of(plan, settled)
    released = (
        context.parallelize(held, len(held)).map(lambda run: _release(plan, attempt, transport, root, run)).collect()
        if held
        else []
    )
    return manifest_of(plan, before, results, settled.held, released)


def ranges_of(plan: Plan, transport: TransportSettings, pieces: int) -> list[LogRange]:
    """The interval's ranges: one per log file over the network or on S3, of whole parts for files at hand."""
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
    # The codec compiles or loads its kernels on import; a driver that does not split has no use for them.
    from loader.extract.ranges import cut
    from loader.reader.walking import log_bytes

    with source.open(segment.file, segment.read_from, segment.read_to) as log:
        return list(cut(log_bytes(log, segment.file), segment, plan.part_bytes, pieces))


def _extract_range(plan: Plan, attempt: str, transport: TransportSettings, root: str, span: LogRange) -> RangeResult:
    from loader.extract.task import RangeExtractor

    with carried():
        return RangeExtractor(plan, attempt, transport.open(), _store(root)).extract(span)


def _release(plan: Plan, attempt: str, transport: TransportSettings, root: str, run: list[Release]) -> RangeResult:
    from loader.extract.task import RangeExtractor

    with carried():
        return RangeExtractor(plan, attempt, transport.open(), _store(root)).release(run)


def _store(root: str) -> Store:
    return open_store(root) if root else NoStore()
