"""Tables without a key: rows are counted by their whole image, and of equal ones any is as good as another.

The changes of a merge come down to one number per image: inserts less deletions. Images compare by the values that the
warehouse holds, NULL equal to NULL, and -0.0 another number than 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from loader.errors import DataError
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.conditions import same_values
from loader.materialise.plan.merge_plan import Work
from loader.materialise.plan.table_layout import TableColumn
from loader.materialise.quoting import identifier, literal

_PRUNING = {"int", "bigint", "date", "timestamp", "timestamp_ntz"}
"""Types of columns whose least and greatest values are looked at, so that files without the rows are not read."""

_PLACE = {"_file": "file", "_pos": "pos"}
_SHOWN = 500  # characters of a row in an error


def net_changes(changes: Changes, work: Work) -> Changes:
    """The changes as one row per image that is there more or less often than before: `net` says by how many.

    Of the loader's columns a row has those of the newest insert of its image.
    """
    image = work.layout.image
    meta = sf.struct("_op", "_seqno", "_row_offset", "_committed_at")
    by_image = changes.frame.groupBy(*(comparable(column, column.value).alias(column.value) for column in image)).agg(
        sf.max_by(meta, meta).alias("meta"), sf.sum(sf.col("new_I") - sf.col("new_D")).alias("net")
    )
    values = (sf.col(column.value).cast(column.type).alias(column.value) for column in image)
    frame = changes.keep(by_image.where("net <> 0").select("meta.*", *values, "net"))
    found = _counted(frame, image)
    return replace(
        changes,
        frame=frame,
        keys=found["images"],
        rows_to_insert=found["added"],
        rows_to_delete=found["removed"],
        within=" AND ".join(_ranges(found, image)) or "true",
    )


def find_deleted_rows(session: SparkSession, changes: Changes, work: Work, branch: str) -> DataFrame:
    """Where the rows are that have to go from the branch: `file` and `pos`.

    Raises:
        DataError: one of them is not there; it is shown.
    """
    image = work.layout.image
    named = (sf.col(identifier(column.name)).alias(f"b_{column.value}") for column in image)
    there = session.table(branch).where(changes.within).select(*named, "_file", "_pos")
    equal = same_values((comparable(c, f"b_{c.value}") for c in image), (comparable(c, c.value) for c in image))
    gone = changes.frame.where("net < 0")
    found = there.join(sf.broadcast(gone), equal).drop(*(f"b_{c.value}" for c in image))
    equals = Window.partitionBy(*(comparable(column, column.value) for column in image))
    nth = sf.row_number().over(equals.orderBy("_file", "_pos"))
    # Not cached: Spark would look for the rows again as soon as they are deleted.
    places = found.withColumn("nth", nth).where("nth <= -net").withColumnsRenamed(_PLACE).localCheckpoint()
    if places.count() < changes.rows_to_delete:
        raise _missing_row_error(gone, places, work)
    return places


def comparable(column: TableColumn, value: Expression | str) -> Expression:
    """A value, or that of a column, as it is compared: a floating-point number by its text, which alone tells -0.0."""
    found = sf.col(value) if isinstance(value, str) else value
    return found.cast("string") if column.type in {"float", "double"} else found


def _counted(frame: DataFrame, image: Iterable[TableColumn]) -> dict[str, Any]:
    """Images, rows `added` and `removed`, and the ends of what has to go: `low c0`, `high c0`, `null c0`."""
    gone = sf.col("net") < 0
    ends = []
    for name in (column.value for column in image if column.type in _PRUNING):
        value = sf.when(gone, sf.col(name))
        ends += [sf.min(value).cast("string").alias(f"low {name}"), sf.max(value).cast("string").alias(f"high {name}")]
        ends += [sf.count_if(gone & sf.col(name).isNull()).alias(f"null {name}")]
    added, removed = (sf.coalesce(sf.sum(sf.when(way, sf.abs("net"))), sf.lit(0)) for way in (~gone, gone))
    sums = (sf.count(sf.lit(1)).alias("images"), added.alias("added"), removed.alias("removed"))
    row = frame.agg(*sums, *ends).first()
    return row.asDict() if row else {}


def _ranges(found: dict[str, Any], image: Iterable[TableColumn]) -> Iterable[str]:
    for column in image:
        ends = [found.get(f"{end} {column.value}") for end in ("low", "high")]
        if None not in ends and not found[f"null {column.value}"]:
            both = " AND ".join(f"CAST({literal(str(end))} AS {column.type})" for end in ends)
            yield f"{identifier(column.name)} BETWEEN {both}"


def _missing_row_error(gone: DataFrame, places: DataFrame, work: Work) -> DataError:
    """The error that shows one of the rows that should go and are not there."""
    image = work.layout.image
    names = [f"n_{column.value}" for column in image]
    found = places.groupBy(*(comparable(c, c.value).alias(name) for c, name in zip(image, names, strict=True))).count()
    equal = same_values((comparable(c, c.value) for c in image), map(sf.col, names))
    there = sf.coalesce("count", sf.lit(0))
    short = gone.join(found, equal, "left").where(there < -sf.col("net"))
    shown = sf.to_json(sf.struct(*(sf.col(c.value).alias(c.name) for c in image)), {"ignoreNullFields": "false"})
    row = short.select(shown.alias("row"), (-sf.col("net")).alias("wanted"), there.alias("there"), "_seqno").first()
    if row is None:
        raise AssertionError("no row is missing among rows that were found to be too few")
    return DataError(
        "a row that was deleted on the server is not in the warehouse",
        why=f"{row.wanted} of this row should go, {row.there} are there: {row.row[:_SHOWN]}",
        hint=work.name.load_again,
        table=work.name,
        position=work.position_of(row._seqno),
    )
