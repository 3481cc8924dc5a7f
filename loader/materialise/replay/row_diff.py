"""Compares the rows of a table with the last versions of its changed keys."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as sf

from loader.materialise.collapse.multiset import comparable
from loader.materialise.collapse.table_changes import Changes
from loader.materialise.conditions import all_of
from loader.materialise.iceberg.warehouse import Warehouse
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.merge_plan import Work
from loader.materialise.plan.table_layout import TableColumn
from loader.materialise.quoting import identifier
from loader.materialise.spec import Sample

SAMPLES = 5
"""The number of sample rows of each kind."""
NULLS = {"ignoreNullFields": "false"}
"""Options of to_json, which show a row with all its columns."""
_KINDS = ("insert", "update", "delete")


@dataclass(frozen=True)
class RowDiff:
    """The difference between a table and its changes.

    Attributes:
        inserts, updates, deletes: numbers of rows to insert, update and delete.
        files: number of data files with rows to update or delete.
        samples: some of these rows.
        changes: the changes that correct the table.
        frame: the differing rows, kept until `release`.
    """

    inserts: int
    updates: int
    deletes: int
    files: int
    samples: tuple[Sample, ...]
    changes: Changes
    frame: DataFrame

    @property
    def rows(self) -> int:
        """The number of differing rows."""
        return self.inserts + self.updates + self.deletes

    def release(self) -> None:
        """Free the memory."""
        self.frame.unpersist()


def diff_rows(warehouse: Warehouse, changes: Changes, work: Work, *, whole: bool) -> RowDiff:
    """Compare the row of each changed key with the row in the table.

    The loader's own columns do not count: a row of an initial load has another seqno than its last change.

    Args:
        warehouse: the catalog.
        changes: the last versions of the changed keys.
        work: the records of the changes.
        whole: the table must have no other rows.
    """
    layout, keys = work.layout, key_places(work.schema)
    counted = [*layout.image, *(column for column in layout.columns if column.name == work.rule.deleted_column)]
    wanted = sf.lit(True) if work.rule.mode == "soft_delete" else sf.col("_op") != "D"
    new = _last_of_equal_keys(changes.frame, work).withColumn("_wanted", wanted)
    there = warehouse.session.table(warehouse.name(work.name))
    old = (there if whole else there.where(changes.within)).select(
        *(sf.col(identifier(column.name)).alias(f"b{number}") for number, column in enumerate(layout.columns)),
        sf.col("_file").alias("_was_in"),
        sf.lit(True).alias("_there"),
    )
    places = {column.value: f"b{number}" for number, column in enumerate(layout.columns)}
    same_key = all_of(sf.col(key) == sf.col(places[key]) for key in keys)
    both = new.join(old, same_key, "full" if whole else "left")
    differs = ~all_of(_equal(column, places[column.value]) for column in counted)
    is_wanted, is_there = (sf.coalesce(name, sf.lit(False)) for name in ("_wanted", "_there"))
    # If somebody else wrote to the table, a key may have several rows. All but the best row are deleted.
    same = Window.partitionBy(*(sf.coalesce(sf.col(key), sf.col(places[key])) for key in keys))
    both = both.withColumn("_differs", differs)
    both = both.withColumn("_copy", sf.row_number().over(same.orderBy("_differs")))
    kind = (
        sf.when(sf.col("_copy") > 1, "delete")
        .when(is_wanted & ~is_there, "insert")
        .when(~is_wanted & is_there, "delete")
        .when(is_wanted & is_there & sf.col("_differs"), "update")
    )
    frame = both.withColumn("_kind", kind).where("_kind IS NOT NULL").persist()
    counts = {row["_kind"]: row["count"] for row in frame.groupBy("_kind").count().collect()}
    return RowDiff(
        inserts=counts.get("insert", 0),
        updates=counts.get("update", 0),
        deletes=counts.get("delete", 0),
        files=frame.select("_was_in").where("_was_in IS NOT NULL").distinct().count(),
        samples=_samples(frame, layout.columns, places),
        changes=_fixing_changes(changes, frame, work, places, sum(counts.values()), whole=whole),
        frame=frame,
    )


def _last_of_equal_keys(changes: DataFrame, work: Work) -> DataFrame:
    """Return one change of each key. Keys are collapsed by their texts, but -0.0 and 0.0 are one key on the server."""
    keys = key_places(work.schema)
    if not any(column.value in keys and column.type in {"float", "double"} for column in work.layout.image):
        return changes
    newest = Window.partitionBy(*keys).orderBy(sf.col("_seqno").desc(), sf.col("_row_offset").desc())
    return changes.withColumn("_nth", sf.row_number().over(newest)).where("_nth = 1").drop("_nth")


def _fixing_changes(
    changes: Changes, frame: DataFrame, work: Work, places: dict[str, str], rows: int, *, whole: bool
) -> Changes:
    """Return the changes that correct the table, one per key. A row without a change is deleted by its key."""
    kept, keys = frame.select(*changes.frame.columns), key_places(work.schema)
    if whole:
        filled = [sf.coalesce(sf.col(key), sf.col(places[key])).alias(key) for key in keys]
        others = [name for name in changes.frame.columns if name not in {*keys, "_op"}]
        kept = frame.select(*filled, *others, sf.coalesce("_op", sf.lit("D")).alias("_op"))
    within = "true" if whole else changes.within
    # Not by the keys themselves: Spark would make 0.0 of -0.0.
    same = {f"_same_{c.value}": comparable(c, c.value) for c in work.layout.image if c.value in keys}
    once = kept.withColumns(same).dropDuplicates(list(same)).drop(*same)
    return changes.with_rows(once, keys=rows, rows_to_insert=rows, within=within)


def _equal(column: TableColumn, place: str) -> Expression:
    """Return whether the value equals the value in the table."""
    new = sf.expr(column.value).cast(column.type)
    return comparable(column, new).eqNullSafe(comparable(column, place))


def _samples(frame: DataFrame, columns: Iterable[TableColumn], places: dict[str, str]) -> tuple[Sample, ...]:
    columns = list(columns)
    before = sf.to_json(sf.struct(*(sf.col(places[c.value]).alias(c.name) for c in columns)), NULLS)
    after = sf.to_json(sf.struct(*(sf.expr(c.value).alias(c.name) for c in columns)), NULLS)
    found: list[Sample] = []
    for kind in _KINDS:
        rows = frame.where(sf.col("_kind") == kind).select(before.alias("before"), after.alias("after"))
        found += (_sample(kind, row) for row in rows.orderBy("before", "after").limit(SAMPLES).collect())
    return tuple(found)


def _sample(kind: str, row: Row) -> Sample:
    return Sample(
        before=None if kind == "insert" else json.loads(row["before"]),
        after=None if kind == "delete" else json.loads(row["after"]),
    )
