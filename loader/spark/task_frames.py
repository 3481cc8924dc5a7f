"""Data frames whose rows Spark tasks read with Python, as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from loader.spark.executor_python import checked, python_error
from loader.spark.workers import private_secrets, work_with

if TYPE_CHECKING:
    import pyarrow as pa
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
    run = checked(partial(work_with, secrets, partial(_read_piece, read, tuple(pieces))))

    def batches(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for found in run(batch.column(0).to_pylist()):
                yield from found

    return session.range(0, len(pieces), 1, max(1, len(pieces))).mapInArrow(batches, layout)


def mapped_frame(
    frame: DataFrame,
    convert: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    layout: str,
    *,
    root: str = "",
) -> DataFrame:
    """Return what tasks make of the rows of each partition of a frame.

    Args:
        frame: its columns are those of the batches that `convert` gets.
        convert: gets all batches of a partition, in a task.
        layout: columns and types of the batches that it returns, as DDL.
        root: address of a store that the tasks write to. They get its secrets as in `task_frame`.
    """
    secrets = private_secrets(frame.sparkSession, {"root": root}) if root else {}
    run = checked(partial(work_with, secrets, convert))

    def batches(found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for converted in run([found]):
            yield from converted

    return frame.mapInArrow(batches, layout)


@lru_cache
def hash_numbers(session: SparkSession, partitions: int) -> tuple[int, ...]:
    """Return a number for each partition: `repartition` by a column of these int values puts one value in each.

    Spark hashes the values. So the numbers from 0 on would leave many partitions empty.
    """
    from pyspark.sql import functions as sf

    found, tried = dict[int, int](), 0
    while len(found) < partitions:
        numbers = session.range(tried, tried + 16 * partitions, numPartitions=1)
        tried += 16 * partitions
        number = sf.col("id").cast("int")
        for place, value in numbers.select(sf.pmod(sf.hash(number), sf.lit(partitions)), number).collect():
            found.setdefault(place, value)
    return tuple(found[place] for place in range(partitions))


def _read_piece(read: Callable[[Any], Any], pieces: Sequence[Any], number: int) -> Any:
    return read(pieces[number])


@contextmanager
def python_of_executors() -> Iterator[None]:
    """Report tasks that could not run because of the Python of their executor.

    Raises:
        UsageError: an executor has another Python or loader than the driver.
    """
    try:
        yield
    except Exception as error:
        if known := python_error(error):
            raise known from error
        raise
