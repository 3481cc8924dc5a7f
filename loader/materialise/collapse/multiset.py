"""Changes of tables without a key: a multiset of whole row images. Among identical rows, any one may be deleted.

The changes of a merge are one number per image: inserts minus deletions. Images are compared by the values in the
warehouse. NULL equals NULL, and -0.0 differs from 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable
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
"""Types of columns by whose smallest and largest values Spark skips files."""

_PLACE = {"_file": "file", "_pos": "pos"}
_SHOWN = 500  # characters of a row in an error


def net_changes(changes: Changes, work: Work) -> Changes:
    """Return the changes with one row per image whose number of rows changes, by `net`.

    The loader's columns come from the newest insert of the image.
    """
    image = work.layout.image
    meta = sf.struct("_op", "_seqno", "_row_offset", "_committed_at")
    by_image = changes.frame.groupBy(*(comparable(column, column.value).alias(column.value) for column in image)).agg(
        sf.max_by(meta, meta).alias("meta"), sf.sum(sf.col("new_I") - sf.col("new_D")).alias("net")
    )
    values = (sf.col(column.value).cast(column.type).alias(column.value) for column in image)
    frame = changes.keep(by_image.where("net <> 0").select("meta.*", *values, "net"))
    found = _counted(frame, image)
    return changes.with_rows(
        frame,
        keys=found["images"],
        rows_to_insert=found["added"],
        rows_to_delete=found["removed"],
        within=" AND ".join(_ranges(found, image)) or "true",
    )


def find_deleted_rows(session: SparkSession, changes: Changes, work: Work, branch: str) -> DataFrame:
    """Return the places of the rows to delete from the branch, as `file` and `pos`.

    Raises:
        DataError: a row to delete is not in the branch.
    """
    image = work.layout.image
    named = (sf.col(identifier(column.name)).alias(f"b_{column.value}") for column in image)
    there = session.table(branch).where(changes.within).select(*named, "_file", "_pos")
    # A column of the warehouse can be wider than that of the server. Structs with two types cannot be compared.
    equal = same_values(
        (comparable(c, f"b_{c.value}") for c in image),
        (comparable(c, sf.col(c.value).cast(there.schema[f"b_{c.value}"].dataType)) for c in image),
    )
    gone = changes.frame.where("net < 0")
    found = there.join(sf.broadcast(gone), equal).drop(*(f"b_{c.value}" for c in image))
    equals = Window.partitionBy(*(comparable(column, column.value) for column in image))
    nth = sf.row_number().over(equals.orderBy("_file", "_pos"))
    # A checkpoint instead of a cache: Spark would read the rows again after they are deleted.
    places = found.withColumn("nth", nth).where("nth <= -net").withColumnsRenamed(_PLACE).localCheckpoint()
    if places.count() < changes.rows_to_delete:
        raise _missing_row_error(gone, places, work)
    return places


def comparable(column: TableColumn, value: Expression | str) -> Expression:
    """Return a value, or the value of a named column, in the form in which it is compared.

    A floating-point number is compared as text, since only its text distinguishes -0.0 from 0.0. A FLOAT may be in a
    wider column of the warehouse, where its text has more digits.
    """
    expression = sf.col(value) if isinstance(value, str) else value
    return expression.cast(column.type).cast("string") if column.type in {"float", "double"} else expression


def _counted(frame: DataFrame, image: Iterable[TableColumn]) -> dict[str, Any]:
    """Return the number of images, of rows `added` and `removed`, and the ends of the removed rows: `low c0`, ...."""
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
    """Return the error with one of the rows to delete that are not in the branch."""
    image = work.layout.image
    names = [f"n_{column.value}" for column in image]
    found = places.groupBy(*(comparable(c, c.value).alias(name) for c, name in zip(image, names, strict=True))).count()
    equal = same_values((comparable(c, c.value) for c in image), map(sf.col, names))
    there = sf.coalesce("count", sf.lit(0))
    short = gone.join(found, equal, "left").where(there < -sf.col("net"))
    shown = sf.to_json(sf.struct(*(sf.col(c.value).alias(c.name) for c in image)), {"ignoreNullFields": "false"})
    row = short.select(shown.alias("row"), (-sf.col("net")).alias("wanted"), there.alias("there"), "_seqno").first()
    if row is None:
        raise AssertionError("no row is missing, although too few rows were found")
    return DataError(
        "a row that was deleted on the server is not in the warehouse",
        why=f"{row.wanted} copies of this row are to be deleted, {row.there} exist: {row.row[:_SHOWN]}",
        hint=work.name.load_again,
        table=work.name,
        position=work.position_of(row._seqno),
    )
