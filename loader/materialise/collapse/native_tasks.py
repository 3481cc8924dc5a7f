"""Collapses the records of a merge with compiled kernels in the tasks of a cluster.

Spark shuffles the staged lines of the last records by key, in buckets, and keeps the records as Arrow streams: see
`loader.native_collapse.key_buckets`. Only statements that write or compare rows convert them to rows of Spark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.key_range import key_between, key_texts, key_type
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
    BUCKET_DDL,
    COUNTS,
    PACKED_DDL,
    pack_last_records,
    read_buckets,
    unpack_records,
)
from loader.native_collapse.last_records import NotSupportedNatively
from loader.spark.job import on_one_machine
from loader.spark.task_frames import hash_numbers, mapped_frame, task_frame
from loader.staging.documents import StagedFile
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
        pieces = _pieces(session, work)
        packed = _packed_records(session, store, work, pieces).persist()
        kept.callback(packed.unpersist)
        files = PackedRecordFiles(packed, len(pieces), tuple(record_types(work)), store.root)
        try:
            return _changes(packed, work, files, kept)
        except NotSupportedNatively as unusual:
            _LOG.info("%s: collapsed by Spark SQL: %s", work.name, unusual)
            return None


def _pieces(session: SparkSession, work: Work) -> list[list[StagedFile]]:
    (group,) = work.file_groups
    return list(group_files(group.files, session.sparkContext.defaultParallelism, _FEWEST_BYTES, _MOST_BYTES))


def _packed_records(
    session: SparkSession, store: Store, work: Work, pieces: Sequence[Sequence[StagedFile]]
) -> DataFrame:
    """Return the last records, and a summary of each partition, with the columns of PACKED_DDL."""
    (group,) = work.file_groups
    (counted,) = group.ranges
    window = counted.after_seqno, counted.last_seqno
    read = partial(read_buckets, store.root, group.schema, window, os.urandom(16), hash_numbers(session, len(pieces)))
    # Spark never merges small partitions of rows that are kept. So there are as many as tasks that read the files.
    lines = task_frame(session, store.root, read, pieces, BUCKET_DDL).repartition(len(pieces), "bucket")
    pack = partial(pack_last_records, group.schema, key_places(work.schema), window)
    return mapped_frame(lines, pack, PACKED_DDL.format(type=key_type(work.schema)))


def _changes(packed: DataFrame, work: Work, files: PackedRecordFiles, kept: ExitStack) -> Changes:
    found = _summary(packed, work)
    counts = {name: found[name] for name in COUNTS}
    if {op: counts[f"all_{op}"] for op in "IUD"} != work.ops:
        raise NotSupportedNatively("the files do not hold what their manifest counts")
    types = record_types(work)
    records = _unpacked(packed, types)
    rows = found["keys"] - (found["deleted"] if work.rule.mode == "mirror" else 0)
    return Changes(
        frame=add_text_columns(records.withColumn("_new", sf.lit(True)), work),
        keys=found["keys"],
        rows_to_insert=rows,
        rows_to_delete=0,
        within=key_between(found["low"], found["high"], work),
        inserts=counts["new_I"],
        updates=counts["new_U"],
        deletes=counts["new_D"],
        misfits={},
        partial=False,
        kept=kept.pop_all(),
        key_frame=_unpacked(packed, {place: types[place] for place in key_places(work.schema)}),
        # Spark gives each data file of few rows a range of keys, and these files would have all keys.
        record_files=files if rows >= MANY_ROWS else None,
    )


def _unpacked(packed: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Return columns of all records, with their types. Each action unpacks them again."""
    return mapped_frame(packed.select("records"), partial(unpack_records, tuple(types)), ddl(types))


def _summary(packed: DataFrame, work: Work) -> dict[str, Any]:
    """Return the sums of all summaries, and the ends of the first key column as text. This query fills the cache."""
    counted = {name: sf.col("_counts")[place] for place, name in enumerate(COUNTS)}
    numbers = counted | {name: sf.col(name) for name in ("keys", "deleted")}
    sums = [sf.coalesce(sf.sum(number), sf.lit(0)).alias(name) for name, number in numbers.items()]
    with left_to_spark():
        row = packed.agg(*sums, *key_texts(work.schema, sf.min("low"), sf.max("high"))).first()
    return row.asDict() if row else {}
