"""The collapsed changes of one table."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from loader.materialise.collapse.record_files import RecordFiles
from loader.materialise.plan.merge_plan import Work
from loader.materialise.quoting import identifier

MANY_ROWS = 1_000_000
"""From this number of rows on, each data file is sorted on its own: sorting all rows takes as long as writing them."""


@dataclass(frozen=True)
class Changes:
    """The collapsed records of a table. `release` frees the memory and the files that they take.

    Attributes:
        frame: the columns of `collapse.casts.row_columns`. There is one row per key whose last record is after the
            applied position, or for a history one row per record. Without a key there is one row per row image, with a
            column `net`: inserts minus deletions. The first action may read the staged files again.
        keys: number of rows of the frame.
        rows_to_insert: number of rows to insert.
        rows_to_delete: number of rows to delete in a table without a key, else 0.
        within: a SQL condition that is true for every row of the table that may be deleted. It uses the smallest and
            largest values of columns, so that Spark prunes files.
        inserts, updates, deletes: numbers of staged records after the applied position.
        misfits: by column, the number of misfits that the rule accepts.
        partial: records lack columns, and must be completed before a merge.
        kept: the resources that `release` frees.
        sorted: the rows are sorted by key, and each partition has a contiguous range.
        key_frame: the key columns of all rows, if they can be read without the other columns.
        record_files: gives the rows as data files, if kernels collapsed the records.
    """

    frame: DataFrame
    keys: int
    rows_to_insert: int
    rows_to_delete: int
    within: str
    inserts: int
    updates: int
    deletes: int
    misfits: dict[str, int]
    partial: bool
    kept: ExitStack
    sorted: bool = False
    key_frame: DataFrame | None = None
    record_files: RecordFiles | None = None

    @property
    def changed_keys(self) -> DataFrame:
        """A frame with the key columns of all rows."""
        return self.frame if self.key_frame is None else self.key_frame

    def with_rows(self, frame: DataFrame, **counts: Any) -> Changes:
        """Return changes with other rows, and with other values of some attributes."""
        return replace(self, frame=frame, key_frame=None, record_files=None, sorted=False, **counts)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Persist another frame until `release`."""
        self.kept.callback(frame.persist().unpersist)
        return frame

    def release(self) -> None:
        """Free memory and files."""
        self.kept.close()


def no_changes(session: SparkSession, work: Work) -> Changes:
    """Return the changes of a table without records."""
    typed = (f"{identifier(column.value)} {column.type}" for column in work.layout.image)
    columns = ("_op string", "_seqno bigint", "_row_offset bigint", "_new boolean", "_committed_at timestamp", *typed)
    return Changes(
        frame=session.createDataFrame([], ", ".join(columns)),
        keys=0,
        rows_to_insert=0,
        rows_to_delete=0,
        within="true",
        inserts=0,
        updates=0,
        deletes=0,
        misfits={},
        partial=False,
        kept=ExitStack(),
    )
