"""Collapses the records of a merge with compiled kernels in the tasks of a cluster.

Spark shuffles the staged lines of the last records by key, in buckets, and keeps the records as Arrow streams: see
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
from loader.native_collapse.key_buckets import (
    BucketSummary,
    Counts,
    pack_last_records,
    read_buckets,
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
_FEWEST_BYTES = 4 * 1024 * 1024
"""Fewer bytes are not worth a task."""


def collapse_in_tasks(session: SparkSession, store: Store, work: Work) -> Changes | None:
    """Return the changes; None if the driver is also the executor, or if Spark SQL must collapse the records."""
    if on_one_machine(session) or not has_last_records(work):
        return None
    with ExitStack() as kept:
        reports = Reports[BucketSummary](session)
        packed = _packed_records(session, store, work, reports)
        kept.callback(packed.unpersist)
        try:
            with left_to_spark():
                summaries = reports.fill(packed)
            return _changes(session, packed, summaries, work, store.root, kept)
        except NotSupportedNatively as unusual:
            _LOG.info("%s: collapsed by Spark SQL: %s", work.name, unusual)
            return None


def _packed_records(session: SparkSession, store: Store, work: Work, reports: Reports[BucketSummary]) -> RDD[bytes]:
    """Return in each partition the packed last records of a bucket."""
    (group,) = work.file_groups
    (counted,) = group.ranges
    window = counted.after_seqno, counted.last_seqno
    pieces = list(group_files(group.files, session.sparkContext.defaultParallelism, _FEWEST_BYTES, _MOST_BYTES))
    buckets = len(pieces)
    read = partial(read_buckets, store.root, group.schema, window, os.urandom(16), buckets)
    pack = partial(pack_last_records, group.schema, key_places(work.schema), window, reports.add)
    return mapped_rows(session, task_rows(session, store.root, read, pieces).partitionBy(buckets, int), pack)


def _changes(
    session: SparkSession,
    packed: RDD[bytes],
    summaries: Sequence[BucketSummary],
    work: Work,
    root: str,
    kept: ExitStack,
) -> Changes:
    counts = reduce(Counts.plus, (summary.counts for summary in summaries))
    if counts.all != work.ops:
        raise NotSupportedNatively("the files do not hold what their manifest counts")
    keys = sum(summary.keys for summary in summaries)
    rows = keys - (sum(summary.deleted for summary in summaries) if work.rule.mode == "mirror" else 0)
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
        kept=kept.pop_all(),
        key_frame=unpacked({place: types[place] for place in key_places(work.schema)}),
        # Spark gives each data file of few rows a range of keys, and these files would have all keys.
        record_files=PackedRecordFiles(session, packed, tuple(types), root) if rows >= MANY_ROWS else None,
    )


def _unpacked(session: SparkSession, packed: RDD[bytes], types: Mapping[str, str]) -> DataFrame:
    """Return columns of all records, with their types. Each action unpacks them again."""
    return frame_of_bytes(session, packed, partial(unpack_records, tuple(types)), ddl(types))
