"""Python objects that Spark tasks make, without conversion to rows of Spark. Spark can shuffle and keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark import AccumulatorParam, StorageLevel, TaskContext

from loader.spark.executor_python import checked
from loader.spark.workers import private_secrets, work_with

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

_Piece = TypeVar("_Piece")
_Found = TypeVar("_Found")
_ATTEMPTS = 3


def task_rows(
    session: SparkSession, root: str, read: Callable[[_Piece], Iterable[_Found]], pieces: Sequence[_Piece]
) -> RDD[_Found]:
    """Return what tasks read, one partition for each piece. Each action reads again.

    Args:
        session: of a cluster.
        root: address of the store that the tasks read. If nobody else can read Spark's traffic, they get its secrets.
        read: gets a piece, in a task.
        pieces: what to read.
    """
    run = checked(partial(work_with, private_secrets(session, {"root": root}), read), flat=True)
    return session.sparkContext.parallelize(pieces, max(1, len(pieces))).mapPartitions(run)


def mapped_rows(
    session: SparkSession,
    rows: RDD[Any],
    convert: Callable[[Iterable[Any]], Iterable[_Found]],
    *,
    root: str = "",
) -> RDD[_Found]:
    """Return what tasks make of the objects of each partition.

    Args:
        session: of a cluster.
        rows: the objects.
        convert: gets all objects of a partition, in a task.
        root: address of a store that the tasks read or write. They get its secrets as in `task_rows`.
    """
    secrets = private_secrets(session, {"root": root}) if root else {}
    run = checked(partial(work_with, secrets, convert), flat=True)
    return rows.mapPartitions(lambda given: run([given]))


def _partition_number() -> int:
    """Return the number of the partition that this task works on."""
    context = TaskContext.get()
    if context is None:
        raise AssertionError("this is not a task of Spark")
    return context.partitionId()


class Reports(Generic[_Found]):
    """What the tasks of a job tell the driver beside their objects: one report for each partition.

    A repeated task replaces its report.

    Args:
        session: of a cluster.
    """

    def __init__(self, session: SparkSession) -> None:
        self._found = session.sparkContext.accumulator(dict[int, _Found](), _Union())

    def add(self, report: _Found) -> None:
        """Tell the driver, in a task."""
        self._found.add({_partition_number(): report})

    @property
    def found(self) -> list[_Found]:
        """The reports by partition, in order."""
        return [report for _, report in sorted(self._found.value.items(), key=itemgetter(0))]

    def run(self, shuffled: RDD[Any]) -> list[_Found]:
        """Run the tasks whose objects are shuffled, and return their reports as `found`. Spark keeps the objects."""
        _count(shuffled)
        return self.found

    def fill(self, rows: RDD[Any]) -> list[_Found]:
        """Keep the objects of tasks that report until `unpersist`, and return the reports by partition, in order."""
        for _ in range(_ATTEMPTS):
            rows.persist(StorageLevel.MEMORY_AND_DISK)
            _count(rows)
            if len(self._found.value) == rows.getNumPartitions():
                return self.found
            # A repeated task does not report if Spark has kept the objects of its first attempt.
            rows.unpersist(blocking=True)
        raise AssertionError(f"{len(self._found.value)} of {rows.getNumPartitions()} partitions have reported")


def _count(rows: RDD[Any]) -> None:
    private: Any = rows
    private._jrdd.count()  # RDD.count() would send all objects to Python


class _Union(AccumulatorParam[dict[int, Any]]):
    def zero(self, value: dict[int, Any]) -> dict[int, Any]:
        return {}

    def addInPlace(self, value1: dict[int, Any], value2: dict[int, Any]) -> dict[int, Any]:  # noqa: N802 - of pyspark
        return value1 | value2
