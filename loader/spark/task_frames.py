"""Data frames whose rows Spark tasks read with Python, as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from loader.spark.executor_python import checked
from loader.spark.workers import private_secrets, work_with

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

_Piece = TypeVar("_Piece")


def task_frame(
    session: SparkSession,
    root: str,
    read: Callable[[_Piece], Iterable[pa.RecordBatch]],
    pieces: Sequence[_Piece],
    layout: str,
) -> DataFrame:
    """Return what tasks read, one task for each piece. Each action on the frame reads again.

    Args:
        session: of the frame.
        root: address of the store that the tasks read. If nobody else can read Spark's traffic, they get its secrets.
        read: gets a piece, in a task.
        pieces: what to read.
        layout: columns and types of the batches, as DDL.
    """
    secrets = private_secrets(session, {"root": root})
    run = checked(partial(work_with, secrets, partial(_read_piece, read, tuple(pieces))), flat=True)

    def batches(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            yield from run(batch.column(0).to_pylist())

    return session.range(0, len(pieces), 1, max(1, len(pieces))).mapInArrow(batches, layout)


def frame_of_bytes(
    session: SparkSession,
    values: RDD[bytes],
    convert: Callable[[Iterable[pa.Buffer]], Iterable[pa.RecordBatch]],
    layout: str,
) -> DataFrame:
    """Return what tasks make of the byte strings of each partition.

    Args:
        session: of the frame.
        values: the byte strings.
        convert: gets all byte strings of a partition, in a task.
        layout: columns and types of the batches that it returns, as DDL.
    """
    run = checked(convert, flat=True)

    def batches(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run([(value.as_buffer() for batch in given for value in batch.column(0))])

    rows = values.map(lambda value: (value,))
    return session.createDataFrame(rows, "value binary", verifySchema=False).mapInArrow(batches, layout)


def _read_piece(read: Callable[[Any], Any], pieces: Sequence[Any], number: int) -> Any:
    return read(pieces[number])
