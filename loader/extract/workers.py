"""Workers of an extraction: Spark's executors, or threads if there is only one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from loader.extract.allocator import keep_memory
from loader.spark.job import on_one_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")


class Workers(Protocol):
    """Runs up to `count` pieces concurrently."""

    count: int

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Return the results of the work on each piece, in order. Raises what the work raises for any piece."""


class Threads:
    """Threads of this process. The codec's kernels release the GIL."""

    def __init__(self, count: int) -> None:
        self.count = count

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Run the work; see Workers. After a failure, no further piece is started."""
        if self.count > 1:
            keep_memory()
        with ThreadPoolExecutor(self.count) as pool:
            try:
                return list(pool.map(work, pieces))
            finally:
                pool.shutdown(cancel_futures=True)


class Tasks:
    """Spark tasks, one for each piece."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.count = self._context.defaultParallelism

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Run the work; see Workers."""
        if not pieces:
            return []
        found: Any = self._context.parallelize(pieces, len(pieces)).map(work).collect()
        return list(found)


def workers_of(spark: SparkSession) -> Workers:
    """Return threads if the driver is also the executor: starting processes takes longer than most intervals."""
    return Threads(spark.sparkContext.defaultParallelism) if on_one_machine(spark) else Tasks(spark)
