"""Collapses the records of a merge with compiled kernels in the tasks of a cluster.

Spark shuffles hashes of keys and numbers of lines, and keeps the records as Arrow streams: see
`loader.native_collapse.key_buckets`. Only statements that write or compare rows convert them to rows of Spark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial, reduce

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.key_range import key_between
from loader.materialise.collapse.native_records import (
    add_text_columns,
    ddl,
    group_files,
    has_last_records,
    left_to_spark,
    record_types,
)
from loader.materialise.collapse.packed_records import PackedRecordFiles
from loader.materialise.collapse.table_changes import MANY_ROWS, Changes
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.key_buckets import choose_lines, index_keys, pack_only_piece, pack_records, unpack_records
from loader.native_collapse.key_ends import join_ends
from loader.native_collapse.last_records import NotSupportedNatively
from loader.native_collapse.pieces import Counts, Piece, PieceSummary
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


def collapse_in_tasks(session: SparkSession, store: Store, work: Work) -> Changes | None:
    """Return the changes; None if the driver is also the executor, or if Spark SQL must collapse the records."""
    if on_one_machine(session) or not has_last_records(work):
        return None
    with ExitStack() as kept:
        pieces = _pieces(session, work)
        reports = Reports[PieceSummary](session)
        packed = _packed_records(session, store, work, pieces, reports)
        kept.callback(packed.unpersist)
        try:
            with left_to_spark():
                summaries = reports.fill(packed)
            return _changes(session, packed, summaries, work, store.root, kept)
        except NotSupportedNatively as unusual:
            _LOG.info("%s: collapsed by Spark SQL: %s", work.name, unusual)
            return None


def _packed_records(
    session: SparkSession, store: Store, work: Work, pieces: Sequence[Piece], reports: Reports[PieceSummary]
) -> RDD[bytes]:
    """Return in each partition the packed last records of a piece."""
    (group,) = work.file_groups
    (counted,) = group.ranges
    window = counted.after_seqno, counted.last_seqno
    key = key_places(work.schema)
    if len(pieces) == 1:
        pack_only = partial(pack_only_piece, store.root, group.schema, key, window, reports.add)
        return task_rows(session, store.root, pack_only, pieces)
    buckets = _buckets(session, len(pieces), work.rows)
    index = partial(index_keys, store.root, group.schema, window, os.urandom(16), buckets)
    parts = task_rows(session, store.root, index, pieces).partitionBy(buckets, int)
    lines = mapped_rows(session, parts, partial(choose_lines, window)).partitionBy(len(pieces), int)
    return mapped_rows(
        session, lines, partial(pack_records, store.root, group.schema, key, reports.add), root=store.root
    )


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
    summaries: Sequence[PieceSummary],
    work: Work,
    root: str,
    kept: ExitStack,
) -> Changes:
    counts = reduce(Counts.plus, (summary.counts for summary in summaries))
    if counts.all != work.ops:
        raise NotSupportedNatively("the files do not hold what their manifest counts")
    keys = sum(summary.keys for summary in summaries)
    rows = keys - (sum(summary.deleted for summary in summaries) if work.rule.mode == "mirror" else 0)
    # Spark gives each of several data files of few rows a range of keys, and these files would have all keys.
    whole = rows >= MANY_ROWS or len(summaries) == 1
    types = record_types(work)
    unpacked = partial(_unpacked, session, packed)
    return Changes(
        frame=add_text_columns(unpacked(types).withColumn("_new", sf.lit(True)), work),
        keys=keys,
        rows_to_insert=rows,
        rows_to_delete=0,
        within=key_between(*join_ends(summary.ends for summary in summaries), work),
        inserts=counts.new["I"],
        updates=counts.new["U"],
        deletes=counts.new["D"],
        misfits={},
        partial=False,
        key_frame=unpacked({place: types[place] for place in key_places(work.schema)}),
        record_files=PackedRecordFiles(session, packed, tuple(types), root) if whole else None,
        kept=kept.pop_all(),
    )


def _unpacked(session: SparkSession, packed: RDD[bytes], types: Mapping[str, str]) -> DataFrame:
    """Return columns of all records, with their types. Each action unpacks them again."""
    return frame_of_bytes(session, packed, partial(unpack_records, tuple(types)), ddl(types))
