"""What a merge is about to do to one table."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Changes:
    """The collapsed records of a table, kept in memory or on disk until `release`.

    Attributes:
        frame: one row per key whose last record is newer than the applied position, for a history one per record, with
            the columns of `loader.materialise.collapse.casts.row`. Without a key: one per row image, with a column
            `net`.
        keys: rows of the frame; survivors: rows to be inserted; leavers: without a key, rows to be deleted.
        within: SQL that holds for every row of the table that may have to go, by the least and greatest values of
            columns, so that files are pruned.
        inserts, updates, deletes: staged records newer than the applied position.
        misfits: values that did not fit and were let go by the rule, by column.
        partial: records lack columns, which have to be known before anything is done.
        kept: what `release` lets go.
        sorted: the rows are in the order of their keys, a stretch of it in each partition.
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

    def keep(self, frame: DataFrame) -> DataFrame:
        """Have Spark keep a frame, too, until `release`."""
        self.kept.callback(frame.persist().unpersist)
        return frame

    def release(self) -> None:
        """Give the room back."""
        self.kept.close()
