"""Collapses the staged records of a table to the rows that a merge writes: typed, checked and counted in one pass.

The rows are the last record of each key. Without a key they are the last record of each row image, and for a history
they are all records.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.errors import StagedDataError, UnsupportedError
from loader.materialise.collapse.casts import (
    add_typed_columns,
    has_misfit,
    lacks_columns,
    lost_values,
    misfit_error,
    record_struct,
    row_columns,
    select_ungrouped,
)
from loader.materialise.collapse.csv_reader import format_error
from loader.materialise.collapse.file_checks import verify_files
from loader.materialise.collapse.key_range import key_between, key_texts
from loader.materialise.collapse.multiset import net_changes
from loader.materialise.collapse.native import collapse_natively
from loader.materialise.collapse.native_tasks import OpenTable, collapse_in_tasks
from loader.materialise.collapse.partial_images import MergeBase, complete_records, incomplete_error
from loader.materialise.collapse.staged_records import read_records
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.plan.merge_plan import Work
from loader.materialise.quoting import identifier
from loader.model.table import TableSchema
from loader.spark.job import on_one_machine
from loader.store.base import Store

_PARTITION_BYTES = 32 * 1024 * 1024
"""Size of the staged files of a partition on a cluster."""
_COUNTS = ("all", "stray", *(f"{age}_{op}" for age in ("all", "new") for op in "IUD"))


def collapse(session: SparkSession, store: Store, work: Work, open_table: OpenTable | None = None) -> Changes:
    """Read the files of `work`, check them against their manifest, and collapse them.

    If the collapsed records lack columns, the changes are `partial`: see `complete_changes`.

    Args:
        session: of the table's catalog.
        store: the staging area.
        work: what to collapse.
        open_table: see `collapse_in_tasks`.

    Raises:
        StagedDataError: a file is missing or changed, a line is not in the staging format, or the manifest counts other
            records.
        DataError: a value does not fit its type.
    """
    return (
        collapse_natively(session, store, work)
        or collapse_in_tasks(session, store, work, open_table)
        or _collapse_by_sql(session, store, work)
    )


def _collapse_by_sql(session: SparkSession, store: Store, work: Work) -> Changes:
    verify_files(session, store, work.files)
    return _collapsed(read_records(session, store, work), work, None)


def complete_changes(session: SparkSession, store: Store, work: Work, changes: Changes, base: MergeBase) -> Changes:
    """Return the changes with the columns that row images leave out.

    The table must be in the state to which the changes are applied.

    Raises:
        UnsupportedError: a row image leaves out a value that is unknown.
        DataError: a value does not fit its type.
    """
    verify_files(session, store, work.files)  # again: the first reading may be long ago
    records = read_records(session, store, work)
    if not work.schema.key:
        last = group_by_key(records, work)
        raise incomplete_error(last.where(lacks_columns(work) & sf.col("last._new")), work, base.exact_at)
    return _collapsed(complete_records(session, records, work, base, changes.within), work, changes, base.exact_at)


def _collapsed(records: DataFrame, work: Work, read: Changes | None, exact_at: int = 0) -> Changes:
    """Return the changes of collapsed records.

    Args:
        records: of the merge.
        work: describes them.
        read: the changes before they were completed, if they were.
        exact_at: see MergeBase.
    """
    last = group_by_key(records, work)
    frame = _typed_rows(last, work).persist()
    try:
        found = _counted(frame, work)
        if read is None:
            _check_counts(found, work)
        elif found["partial"]:
            raise incomplete_error(last.where(lacks_columns(work) & sf.col("last._new")), work, exact_at)
        if found["bad"] and not found["partial"]:
            raise misfit_error(last.where("last._new"), work)
    except BaseException:
        frame.unpersist()
        raise
    changes = _changes(frame, found, work, read)
    plain = work.schema.key or work.rule.mode == "history" or changes.partial
    return changes if plain else net_changes(changes, work)


def _changes(frame: DataFrame, found: dict[str, Any], work: Work, read: Changes | None) -> Changes:
    """Return the changes of a persisted frame of typed rows and its sums. For `read` see `_collapsed`."""
    kept = read.kept if read else ExitStack()
    kept.callback(frame.unpersist)
    return Changes(
        frame=frame.where("_new"),
        keys=found["keys"],
        rows_to_insert=found["survivors"],
        rows_to_delete=0,
        within=key_between(found["low"], found["high"], work) if work.schema.key else "true",
        inserts=read.inserts if read else found["new_I"],
        updates=read.updates if read else found["new_U"],
        deletes=read.deletes if read else found["new_D"],
        misfits={name: found[f"lost {name}"] for name in lost_values(work) if found[f"lost {name}"]},
        partial=bool(found["partial"]),
        kept=kept,
    )


def group_by_key(records: DataFrame, work: Work) -> DataFrame:
    """Return one row per key: `last`, a struct of the last record by (seqno, row offset), and counts of its records.

    Keys are compared as staged text, byte by byte. A table without a key is grouped by whole rows: there an insert
    counts as later than any deletion. A history is not grouped.
    """
    new = sf.col("_new")
    conditions = {"all": sf.lit(True), "stray": sf.col("_form") < 0}
    conditions |= {f"all_{op}": sf.col("_op") == op for op in "IUD"}
    conditions |= {f"new_{op}": (sf.col("_op") == op) & new for op in "IUD"}
    if work.rule.mode == "history":
        each = [condition.cast("bigint").alias(name) for name, condition in conditions.items()]
        return select_ungrouped(records, work, *each)
    # Two records at one offset would be a fault of the log reader. The op still makes reruns deterministic.
    order = [sf.col(name) for name in ("_seqno", "_row_offset", "_op")]
    order = [new, *order] if work.schema.key else [new, sf.col("_op") == "I", *order]
    counts = [sf.count_if(condition).alias(name) for name, condition in conditions.items()]
    by = key_places(work.schema) or places(work.schema)
    if not on_one_machine(records.sparkSession):
        # Spark never merges small partitions of rows that are kept.
        records = records.repartition(max(1, sum(file.bytes for file in work.files) // _PARTITION_BYTES), *by)
    return records.groupBy(*by).agg(sf.max_by(record_struct(work), sf.struct(*order)).alias("last"), *counts)


def _typed_rows(last: DataFrame, work: Work) -> DataFrame:
    new = sf.col("last._new")
    losses = (value.alias(f"lost {name}") for name, value in lost_values(work).items())
    flags = ((has_misfit(work) & new).alias("bad"), (lacks_columns(work) & new).alias("partial"))
    return add_typed_columns(last, work).select(*row_columns(work), *flags, *losses, *_COUNTS)


def _counted(frame: DataFrame, work: Work) -> dict[str, Any]:
    """Return sums over the frame. This query fills the cache."""
    new = sf.col("_new")
    kept = sf.lit(True) if work.rule.mode != "mirror" else sf.col("_op") != "D"
    sums = frame.agg(
        *(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in _COUNTS),
        *(
            _rows_with(new & sf.col(identifier(f"lost {name}")), work).alias(f"lost {name}")
            for name in lost_values(work)
        ),
        *_key_ends(new, work.schema),
        sf.count_if("bad").alias("bad"),
        sf.count_if("partial").alias("partial"),
        sf.count_if(new).alias("keys"),
        sf.count_if(new & kept).alias("survivors"),
    )
    try:
        row = sums.first()
    except Exception as error:
        raise format_error(error, work.name) or error from error
    return row.asDict() if row else {}


def _rows_with(condition: Expression, work: Work) -> Expression:
    """Return how many of the written rows meet a condition. Without a key, an image can be written several times."""
    if work.schema.key or work.rule.mode == "history":
        return sf.count_if(condition)
    more = sf.greatest(sf.col("new_I") - sf.col("new_D"), sf.lit(0))
    return sf.coalesce(sf.sum(sf.when(condition, more)), sf.lit(0))


def _check_counts(found: dict[str, Any], work: Work) -> None:
    """Verify that the files hold the records that the manifests count."""
    counted = {"all": work.rows} | {f"all_{op}": count for op, count in work.ops.items()}
    for name, expected in counted.items():
        if found[name] != expected:
            raise StagedDataError(
                "the staged files do not hold the records that their manifest counts",
                why=f"{name.removeprefix('all_')}: {expected} in the manifests, {found[name]} in the files",
                hint="loader intervals START --verify names the file; then: loader staged restore START; "
                f"or {work.name.load_again}",
                table=work.name,
            )
    if found["stray"]:
        raise UnsupportedError(
            "the staged schema of records does not match the schema derived from the DDL statements before them",
            why=f"{found['stray']} records",
            hint=work.name.load_again,
            table=work.name,
        )


def _key_ends(new: Expression, schema: TableSchema) -> list[Expression]:
    """Return the smallest and the largest value of the first key column, as text."""
    if not schema.key:
        return []
    first = sf.when(new, sf.col(key_places(schema)[0]))
    return key_texts(schema, sf.min(first), sf.max(first))
