"""Collapses the records of a merge with compiled kernels in the tasks of a cluster.

Spark shuffles the staged lines of the last records by key, in buckets: see `loader.native_collapse.key_buckets`. The
lines are kept, and each action on the changes converts them again. That takes less time than to keep converted rows.
"""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.key_range import key_between, key_texts, key_type
from loader.materialise.collapse.native_records import (
    add_text_columns,
    group_files,
    has_last_records,
    left_to_spark,
    record_ddl,
)
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.key_buckets import (
    BUCKET_DDL,
    COUNTS,
    SUMMARY_DDL,
    read_buckets,
    read_last_records,
    summarise_last_records,
)
from loader.native_collapse.last_records import NotSupportedNatively
from loader.spark.job import on_one_machine
from loader.spark.task_frames import mapped_frame, task_frame
from loader.store.base import Store

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 64 * 1024 * 1024
"""Size of the files of one task, unless a single file is larger."""
_FEWEST_BYTES = 4 * 1024 * 1024
"""Fewer bytes are not worth a task."""
_BUCKETS = 16
"""Buckets per partition. Spark chooses the partition of a bucket, and with several their sizes become similar."""


def collapse_in_tasks(session: SparkSession, store: Store, work: Work) -> Changes | None:
    """Return the changes; None if the driver is also the executor, or if Spark SQL must collapse the records."""
    if on_one_machine(session) or not has_last_records(work):
        return None
    with ExitStack() as kept:
        lines = _bucketed_lines(session, store, work).persist()
        kept.callback(lines.unpersist)
        try:
            return _changes(lines, work, kept)
        except NotSupportedNatively as unusual:
            _LOG.info("%s: collapsed by Spark SQL: %s", work.name, unusual)
            return None


def _bucketed_lines(session: SparkSession, store: Store, work: Work) -> DataFrame:
    """Return the lines of the last records of each task's files. Each partition has whole buckets of all tasks."""
    group = work.file_groups[0]
    pieces = list(group_files(group.files, session.sparkContext.defaultParallelism, _FEWEST_BYTES, _MOST_BYTES))
    buckets = _BUCKETS * len(pieces)
    read = partial(read_buckets, store.root, group.schema, _window(work), os.urandom(16), buckets)
    # Spark never merges small partitions of rows that are kept. So there are as many as tasks that read the files.
    return task_frame(session, store.root, read, pieces, BUCKET_DDL).repartition(len(pieces), "bucket")


def _changes(lines: DataFrame, work: Work, kept: ExitStack) -> Changes:
    key, schema = key_places(work.schema), work.file_groups[0].schema
    found = _summary(lines, work)
    counts = {name: found[name] for name in COUNTS}
    if {op: counts[f"all_{op}"] for op in "IUD"} != work.ops:
        raise NotSupportedNatively("the files do not hold what their manifest counts")
    records = mapped_frame(lines, partial(read_last_records, schema, key, _window(work)), record_ddl(work))
    return Changes(
        frame=add_text_columns(records.withColumn("_new", sf.lit(True)), work),
        keys=found["keys"],
        rows_to_insert=found["keys"] - (found["deleted"] if work.rule.mode == "mirror" else 0),
        rows_to_delete=0,
        within=key_between(found["low"], found["high"], work),
        inserts=counts["new_I"],
        updates=counts["new_U"],
        deletes=counts["new_D"],
        misfits={},
        partial=False,
        kept=kept.pop_all(),
    )


def _summary(lines: DataFrame, work: Work) -> dict[str, Any]:
    """Return the sums over all partitions, and the ends of the first key column as text. This query keeps the lines."""
    find = partial(summarise_last_records, work.file_groups[0].schema, key_places(work.schema), _window(work))
    parts = mapped_frame(lines, find, SUMMARY_DDL.format(type=key_type(work.schema)))
    counted = {name: sf.col("_counts")[place] for place, name in enumerate(COUNTS)}
    numbers = counted | {name: sf.col(name) for name in ("keys", "deleted")}
    sums = [sf.coalesce(sf.sum(number), sf.lit(0)).alias(name) for name, number in numbers.items()]
    with left_to_spark():
        row = parts.agg(*sums, *key_texts(work.schema, sf.min("low"), sf.max("high"))).first()
    return row.asDict() if row else {}


def _window(work: Work) -> tuple[int, int]:
    """Return the seqnos between which records count: after the first one, up to the second one."""
    (counted,) = work.file_groups[0].ranges
    return counted.after_seqno, counted.last_seqno
