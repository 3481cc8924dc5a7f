"""Where the pieces of an extraction are done: Spark's executors, or threads where there is but this machine."""

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
    """So many at once."""

    count: int

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """What the work comes to for each piece, in their order. Raises what it raises for any."""


class Threads:
    """Threads of this process. The codec's kernels release the interpreter's lock."""

    def __init__(self, count: int) -> None:
        self.count = count

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """See Workers; after a failure no further piece is begun."""
        if self.count > 1:
            keep_memory()
        with ThreadPoolExecutor(self.count) as pool:
            try:
                return list(pool.map(work, pieces))
            finally:
                pool.shutdown(cancel_futures=True)


class Tasks:
    """Tasks of Spark, one for each piece."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.count = self._context.defaultParallelism

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """See Workers."""
        if not pieces:
            return []
        found: Any = self._context.parallelize(pieces, len(pieces)).map(work).collect()
        return list(found)


def workers_of(spark: SparkSession) -> Workers:
    """Threads where the driver is the executor too: to start processes takes longer than most intervals."""
    return Threads(spark.sparkContext.defaultParallelism) if on_one_machine(spark) else Tasks(spark)
