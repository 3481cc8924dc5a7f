"""Extracting an interval: split it, extract its ranges as Spark tasks, judge its statements, publish the manifest."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence

from pyspark.sql import SparkSession

from loader import __version__
from loader.errors import DataError
from loader.extract.judge import judge
from loader.extract.result import RangeResult
from loader.extract.span import LogRange, whole_segment
from loader.extract.spec import ExtractResult, ExtractSpec, TransportSettings, result_of
from loader.job import carried
from loader.staging.chain import PlanChain
from loader.staging.documents import Balance, Manifest, Plan
from loader.store.opening import open_store


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
    context = spark.sparkContext
    ranges = ranges_of(plan, spec.transport, spec.ranges or context.defaultParallelism)
    attempt = uuid.uuid4().hex[:12]
    root, transport = spec.staging_root, spec.transport
    results = (
        context.parallelize(ranges, len(ranges))
        .map(lambda span: _extract_range(plan, attempt, transport, root, span))
        .collect()
    )
    mine = manifest_of(plan, results)
    published = chain.publish(mine)
    own = published.canonical() == mine.canonical()  # names of the attempt are in it
    return result_of(published, "staged" if own else "already")


def ranges_of(plan: Plan, transport: TransportSettings, pieces: int) -> list[LogRange]:
    """The interval's ranges: one per log file over the network, of whole parts for files at hand."""
    source = transport.open()
    found: list[LogRange] = []
    for file, begin, end in source.segments(plan.interval):
        if begin == end:
            continue
        segment = whole_segment(file, int(file.rpartition(".")[2]), begin, end, plan.part_bytes)
        if transport.kind == "file" and segment.end_part - segment.first_part > 1 and pieces > 1:
            found += _split(segment, plan, transport, pieces)
        else:
            found.append(segment)
    return found


def _split(segment: LogRange, plan: Plan, transport: TransportSettings, pieces: int) -> list[LogRange]:
    # The codec compiles or loads its kernels on import; a driver that does not split has no use for them.
    from loader.binlog.registry import TableRegistry
    from loader.extract.blocks import format_of, index_range
    from loader.extract.ranges import split

    with transport.open().open(segment.file, segment.read_from, segment.read_to) as log:
        form = format_of(log, segment.file)
        index = index_range(log, segment, form, TableRegistry(lambda _: False), plan.part_bytes)
    return split(segment, index, plan.part_bytes, pieces)


def _extract_range(plan: Plan, attempt: str, transport: TransportSettings, root: str, span: LogRange) -> RangeResult:
    from loader.extract.task import RangeExtractor

    with carried():
        return RangeExtractor(plan, attempt, transport.open(), open_store(root)).extract(span)


def manifest_of(plan: Plan, results: Sequence[RangeResult]) -> Manifest:
    """The manifest of all ranges of a plan.

    Raises:
        DataError, UnsupportedError: a statement that stops the interval, or accounts that do not close.
    """
    files = sorted((file for result in results for file in result.files), key=lambda f: f.key.split("/", 4)[-1])
    schemas = {key: schema for result in results for key, schema in result.schemas.items()}
    return Manifest(
        source=plan.source,
        generation=plan.generation,
        identity=plan.identity,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        stop_seqno=plan.stop_seqno,
        files=tuple(files),
        schemas={key: schemas[key].as_dict() for key in sorted(schemas)},
        barriers=judge([s for result in results for s in result.statements], plan.tables),
        balance=_balance(plan, results),
        loader_version=__version__,
    )


def _balance(plan: Plan, results: Sequence[RangeResult]) -> Balance:
    kinds: Counter[str] = Counter()
    for result in results:
        kinds.update(result.event_types)
    walked = sum(result.bytes for result in results)
    staged = sum(result.row_events_staged for result in results)
    seen = sum(result.row_events for result in results)
    start, stop = plan.interval.start, plan.interval.stop
    if start.lognum == stop.lognum and walked != stop.logpos - start.logpos:
        raise DataError(
            "the accounts of the interval do not close: not every byte was walked exactly once",
            why=f"{walked} bytes were walked of {stop.logpos - start.logpos}",
            hint="this is a fault of the loader; please report it with the plan",
            interval=plan.start_seqno,
        )
    return Balance(
        events=sum(kinds.values()),
        bytes=walked,
        transactions=sum(result.transactions for result in results),
        event_types=dict(sorted(kinds.items())),
        row_events_staged=staged,
        skipped={"row events of tables that are not captured": seen - staged},
    )
