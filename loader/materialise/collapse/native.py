"""Collapses the records of a merge with compiled kernels, if the driver is also the executor and they fit its memory.

The result equals that of `loader.materialise.collapse.last_versions`, in a tenth of the time. It needs records of one
schema, with all columns, whose values fit their columns. It falls back to Spark SQL for everything else.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.key_range import key_between
from loader.materialise.collapse.native_records import (
    MOST_FILE_BYTES,
    add_text_columns,
    ddl,
    has_last_records,
    record_types,
)
from loader.materialise.collapse.record_files import LocalRecordFiles
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.native_collapse.last_records import LastRecords, NotSupportedNatively
from loader.native_collapse.parquet_files import write_parquet
from loader.spark.job import on_one_machine
from loader.spark.scratch import scratch_folder
from loader.store.base import Store

_LOG = logging.getLogger(__name__)
_MOST_ROWS = 20_000_000
"""Records. Each takes some 60 bytes of memory. The last record of each key also takes the memory of its values."""
_READ_BYTES = 3 * MOST_FILE_BYTES
"""Size of all files that are read at the same time."""


def collapse_natively(session: SparkSession, store: Store, work: Work) -> Changes | None:
    """Return the changes, whose values are in local files; None if Spark must collapse the records."""
    if not _is_supported(session, work):
        return None
    with ExitStack() as kept:
        folder = kept.enter_context(scratch_folder(session))
        try:
            return _changes(session, store, work, folder, kept)
        except NotSupportedNatively as unusual:
            _LOG.info("%s: collapsed by Spark: %s", work.name, unusual)
            return None


def _is_supported(session: SparkSession, work: Work) -> bool:
    """Return whether threads of the driver can find the last records."""
    if not has_last_records(work) or not on_one_machine(session):
        return False
    return work.rows <= _MOST_ROWS


def _changes(session: SparkSession, store: Store, work: Work, folder: Path, kept: ExitStack) -> Changes:
    (group,) = work.file_groups
    (counted,) = group.ranges
    largest = max(file.bytes for file in group.files)
    slots = session.sparkContext.defaultParallelism
    threads = min(slots, max(1, _READ_BYTES // max(1, largest)))
    with ThreadPoolExecutor(threads) as pool:
        latest = LastRecords(store, group.files, group.schema, counted.after_seqno, counted.last_seqno, pool, threads)
        if latest.all != work.ops:
            raise NotSupportedNatively("the files do not hold what their manifest counts")
        written = write_parquet(latest, folder, key_places(work.schema), pool, threads)
    return Changes(
        frame=_frame(session, folder, work),
        keys=latest.count,
        rows_to_insert=latest.count - (written.deleted if work.rule.mode == "mirror" else 0),
        rows_to_delete=0,
        within=key_between(written.low, written.high, work),
        inserts=latest.new["I"],
        updates=latest.new["U"],
        deletes=latest.new["D"],
        misfits={},
        partial=False,
        kept=kept.pop_all(),
        sorted=written.sorted,
        record_files=LocalRecordFiles(folder, slots, sorted_=written.sorted),
    )


def _frame(session: SparkSession, folder: Path, work: Work) -> DataFrame:
    reader = session.read.schema(ddl(record_types(work))).option("datetimeRebaseMode", "CORRECTED")
    return add_text_columns(reader.parquet(folder.as_uri()).withColumn("_new", sf.lit(True)), work)
