"""Collapses the records of a merge with compiled kernels in the tasks of a cluster.

Spark shuffles hashes of keys and numbers of lines: see `loader.native_collapse.key_buckets`. The tasks that read the
last records also write the data files of the table, and keep the keys. For what only Spark can write, they keep the
records.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial, reduce

import pyarrow as pa
from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.key_range import key_between
from loader.materialise.collapse.native_records import (
    add_text_columns,
    ddl,
    group_files,
    has_last_records,
    record_types,
    unsupported_in_tasks,
)
from loader.materialise.collapse.table_changes import MANY_ROWS, Changes
from loader.materialise.collapse.task_row_files import TaskRowFiles, plan_task_files
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.exchanged_keys import Counts, KeyCounts, Piece, PieceSummary, Window
from loader.native_collapse.key_buckets import (
    choose_lines,
    ignore_summary,
    index_keys,
    keep_all_columns,
    pack_only_piece,
    pack_records,
    unpack_records,
)
from loader.native_collapse.key_ends import join_ends
from loader.native_collapse.last_records import NotSupportedNatively
from loader.spark.job import on_one_machine
from loader.spark.task_frames import frame_of_bytes
from loader.spark.task_rows import Reports, mapped_rows, task_rows
from loader.store.base import Store

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 64 * 1024 * 1024
"""Size of the files of one task, unless a single file is larger."""
_FEWEST_BYTES = 16 * 1024 * 1024
"""Fewer bytes are not worth a task."""
_BUCKET_ROWS = 1_000_000
"""Records in a bucket if each has a key of its own. A task takes some 200 bytes of memory for each."""

OpenTable = Callable[[], TableMetadata | None]
"""Returns the table, which it creates if need be; None if its columns change before the rows are inserted."""
_Pack = Callable[[Callable[[PieceSummary], None], Callable[[int, pa.Table], pa.Table]], "RDD[bytes]"]
"""Returns what `key_buckets.pack_records` yields for each piece, given `report` and `take`."""


def collapse_in_tasks(
    session: SparkSession, store: Store, work: Work, open_table: OpenTable | None = None
) -> Changes | None:
    """Return the changes; None if the driver is also the executor, or if Spark SQL must collapse the records.

    Args:
        session: of the tasks.
        store: the staging area.
        work: what to collapse.
        open_table: the tasks also write data files of the table if there are many rows, or if there is one task.
    """
    if on_one_machine(session) or not has_last_records(work):
        return None
    with ExitStack() as kept:
        try:
            with unsupported_in_tasks():
                return _collapse(session, store, work, open_table, kept)
        except NotSupportedNatively as unusual:
            _LOG.info("%s: collapsed by Spark SQL: %s", work.name, unusual)
            return None


def _collapse(
    session: SparkSession, store: Store, work: Work, open_table: OpenTable | None, kept: ExitStack
) -> Changes:
    pieces = _pieces(session, work)
    (group,) = work.file_groups
    (counted,) = group.ranges
    window = counted.after_seqno, counted.last_seqno
    if len(pieces) == 1:
        pack, has_many = _pack_one(session, store.root, work, window, pieces), True
    else:
        pack, last = _pack_each(session, store.root, work, window, pieces)
        # Spark gives each of several data files of few rows a range of keys, and these files would have all keys.
        has_many = _count_rows(last, work) >= MANY_ROWS
    table = open_table() if open_table and has_many else None
    files = plan_task_files(session, table, work, store.root, len(pieces)) if table else None
    reports = Reports[PieceSummary](session)
    packed = _persist(pack(reports.add, files.write_piece if files else keep_all_columns), kept)
    if files:
        kept.callback(files.discard)
    summaries = reports.fill(packed)
    if files:
        files.take_reported()
    records = _persist(pack(ignore_summary, keep_all_columns), kept) if files else packed
    return _changes(session, packed, records, summaries, work, files, kept)


def _pack_one(session: SparkSession, root: str, work: Work, window: Window, pieces: Sequence[Piece]) -> _Pack:
    """Return what packs the last records of a single piece."""
    schema, key = work.file_groups[0].schema, key_places(work.schema)
    return lambda report, take: task_rows(
        session, root, partial(pack_only_piece, root, schema, key, window, report, take), pieces
    )


def _pack_each(
    session: SparkSession, root: str, work: Work, window: Window, pieces: Sequence[Piece]
) -> tuple[_Pack, KeyCounts]:
    """Find the lines with the last records. Return what packs them, and their numbers."""
    schema, key = work.file_groups[0].schema, key_places(work.schema)
    buckets = _buckets(session, len(pieces), work.rows)
    index = partial(index_keys, root, schema, window, os.urandom(16), buckets)
    parts = task_rows(session, root, index, pieces).partitionBy(buckets, int)
    reports = Reports[KeyCounts](session)
    lines = mapped_rows(session, parts, partial(choose_lines, window, reports.add)).partitionBy(len(pieces), int)
    last = reduce(KeyCounts.plus, reports.run(lines))
    return lambda report, take: mapped_rows(
        session, lines, partial(pack_records, root, schema, key, report, take), root=root
    ), last


def _persist(packed: RDD[bytes], kept: ExitStack) -> RDD[bytes]:
    """Return packed records that the first action keeps until the release."""
    kept.callback(packed.unpersist)
    return packed.persist(StorageLevel.MEMORY_AND_DISK)


def _count_rows(last: KeyCounts, work: Work) -> int:
    """Return the number of rows to insert for last records."""
    return last.keys - (last.deleted if work.rule.mode == "mirror" else 0)


def _pieces(session: SparkSession, work: Work) -> list[Piece]:
    slots = session.sparkContext.defaultParallelism
    return [Piece(*each) for each in enumerate(group_files(work.files, slots, _FEWEST_BYTES, _MOST_BYTES))]


def _buckets(session: SparkSession, pieces: int, rows: int) -> int:
    """Return the number of buckets: the same for each slot, and none has too many keys for the memory of a task."""
    slots = session.sparkContext.defaultParallelism
    fewest = max(min(pieces, slots), -(-rows // _BUCKET_ROWS))
    return fewest if fewest <= slots else slots * -(-fewest // slots)


def _changes(
    session: SparkSession,
    packed: RDD[bytes],
    records: RDD[bytes],
    summaries: Sequence[PieceSummary],
    work: Work,
    files: TaskRowFiles | None,
    kept: ExitStack,
) -> Changes:
    """Return the changes. `packed` has at least the key columns of the records."""
    counts = reduce(Counts.plus, (summary.counts for summary in summaries))
    if counts.all != work.ops:
        raise NotSupportedNatively("the files do not hold what their manifest counts")
    last = reduce(KeyCounts.plus, (summary.last for summary in summaries))
    types = record_types(work)
    return Changes(
        frame=add_text_columns(_unpacked(session, records, types).withColumn("_new", sf.lit(True)), work),
        keys=last.keys,
        rows_to_insert=_count_rows(last, work),
        rows_to_delete=0,
        within=key_between(*join_ends(summary.ends for summary in summaries), work),
        inserts=counts.new["I"],
        updates=counts.new["U"],
        deletes=counts.new["D"],
        misfits={},
        partial=False,
        key_frame=_unpacked(session, packed, {place: types[place] for place in key_places(work.schema)}),
        record_files=files,
        kept=kept.pop_all(),
    )


def _unpacked(session: SparkSession, packed: RDD[bytes], types: Mapping[str, str]) -> DataFrame:
    """Return columns of all records, with their types. Each action unpacks them again."""
    return frame_of_bytes(session, packed, partial(unpack_records, tuple(types)), ddl(types))
