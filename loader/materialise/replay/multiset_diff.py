"""Compares two tables without a key as multisets of whole rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from loader.materialise.collapse.multiset import comparable
from loader.materialise.conditions import same_values
from loader.materialise.plan.table_layout import TableColumn
from loader.materialise.quoting import identifier
from loader.materialise.replay.row_diff import NULLS, SAMPLES
from loader.materialise.spec import Sample

_WAYS = ("net > 0", "net < 0")


@dataclass(frozen=True)
class MultisetDiff:
    """The difference of two multisets of rows.

    Attributes:
        inserts: number of rows to insert.
        deletes: number of rows to delete.
        files: number of data files with copies of rows to delete.
        samples: some of these rows.
    """

    inserts: int
    deletes: int
    files: int
    samples: tuple[Sample, ...]

    @property
    def rows(self) -> int:
        """The number of rows to insert or delete."""
        return self.inserts + self.deletes


def diff_multisets(there: DataFrame, wanted: DataFrame, columns: Sequence[TableColumn]) -> MultisetDiff:
    """Compare the rows of a table with the rows that it should have.

    Args:
        there: the table. All of it is read.
        wanted: the rows that it should have. All of them are read.
        columns: the columns to compare.
    """
    names = [f"v{number}" for number in range(len(columns))]
    sides = [frame.select(*_values(columns), sf.lit(way).alias("way")) for frame, way in ((there, -1), (wanted, 1))]
    # `net`: how many copies of a row are missing.
    net = sides[0].unionAll(sides[1]).groupBy(*names).agg(sf.sum("way").alias("net")).where("net <> 0").persist()
    try:
        more, less = (sf.coalesce(sf.sum(sf.when(sf.expr(way), sf.abs("net"))), sf.lit(0)) for way in _WAYS)
        inserts, deletes = net.agg(more, less).collect()[0]
        return MultisetDiff(inserts, deletes, _files(there, net, columns) if deletes else 0, _samples(net, columns))
    finally:
        net.unpersist()


def _values(columns: Sequence[TableColumn]) -> list[Expression]:
    return [comparable(column, sf.col(identifier(column.name))).alias(f"v{n}") for n, column in enumerate(columns)]


def _files(there: DataFrame, net: DataFrame, columns: Sequence[TableColumn]) -> int:
    rows = there.select(*_values(columns), sf.col("_file").alias("file")).alias("there")
    there_values, gone_values = ([sf.col(f"{side}.v{n}") for n in range(len(columns))] for side in ("there", "gone"))
    equal = same_values(there_values, gone_values)
    return rows.join(net.where(_WAYS[1]).alias("gone"), equal, "left_semi").select("file").distinct().count()


def _samples(net: DataFrame, columns: Sequence[TableColumn]) -> tuple[Sample, ...]:
    values = (sf.col(f"v{number}").cast(column.type).alias(column.name) for number, column in enumerate(columns))
    shown = sf.to_json(sf.struct(*values), NULLS).alias("row")
    found = [
        [json.loads(row["row"]) for row in net.where(way).select(shown).orderBy("row").limit(SAMPLES).collect()]
        for way in _WAYS
    ]
    inserts, deletes = found
    return (
        *(Sample(before=None, after=row) for row in inserts),
        *(Sample(before=row, after=None) for row in deletes),
    )
