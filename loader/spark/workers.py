"""Workers of a stage: Spark's executors, or threads if there is only one machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import BoundedSemaphore, Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from zipimport import zipimporter

from pydantic import BaseModel

from loader.secret import find_secrets, keep_secrets
from loader.spark.allocator import keep_memory
from loader.spark.executor_python import checked, errors_of_tasks
from loader.spark.hdfs_tokens import hdfs_tokens
from loader.spark.job import on_one_machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PRIVATE = ("spark.authenticate", "spark.network.crypto.enabled")
"""Properties of Spark with which nobody else can read or join the traffic between driver and executors."""
_OF_THE_DRIVER = ("catalog",)  # only the driver talks to the catalog
_KEPT_BY_TASKS = 1 << 28
_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")


def missing_privacy(conf: Mapping[str, str]) -> list[str]:
    """Return which properties of Spark are missing for private traffic between driver and executors."""
    return [name for name in PRIVATE if conf.get(name, "").lower() != "true"]


class Counter(Protocol):
    """A number that workers add to and that the driver reads."""

    @property
    def value(self) -> int:
        """The sum so far."""

    def add(self, term: int) -> None:
        """Add a number."""


class Workers(Protocol):
    """Runs up to `count` pieces concurrently."""

    count: int

    def counter(self, start: int) -> Counter:
        """Return a counter for the work of `each`."""

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Return the results of the work on each piece, in order. Raises what the work raises for any piece."""

    def limited(self, count: int) -> Workers:
        """Return workers that run up to `count` pieces concurrently, of all their callers together."""


class ThreadCounter:
    """A counter of one process: see Counter."""

    def __init__(self, start: int) -> None:
        self.value = start
        self._lock = Lock()

    def add(self, term: int) -> None:
        """See Counter."""
        with self._lock:
            self.value += term


class Threads:
    """Threads of this process. The codec's kernels release the GIL.

    Several callers may use one object: all their pieces together share its threads.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = BoundedSemaphore(count)

    def counter(self, start: int) -> Counter:
        """See Workers."""
        return ThreadCounter(start)

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Run the work; see Workers. After a failure, no further piece is started."""
        if self.count > 1:
            keep_memory()
        with ThreadPoolExecutor(self.count) as pool:
            try:
                return list(pool.map(partial(self._run, work), pieces))
            finally:
                pool.shutdown(cancel_futures=True)

    def limited(self, count: int) -> Workers:
        """See Workers. There may be more threads than before."""
        return Threads(count)

    def _run(self, work: Callable[[_Piece], _Result], piece: _Piece) -> _Result:
        with self._free:
            return work(piece)


class Tasks:
    """Spark tasks, one for each piece.

    If nobody else can read the traffic, they get the secrets that only the driver has.

    Args:
        spark: of a cluster.
        spec: what the work needs. References to secrets are in it.
    """

    def __init__(self, spark: SparkSession, spec: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._context = spark.sparkContext
        self.count = self._context.defaultParallelism
        self._secrets = private_secrets(spark, spec)

    def counter(self, start: int) -> Counter:
        """Return an accumulator. It counts a repeated task again, so it is only for reports of progress."""
        return self._context.accumulator(start)

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Run the work; see Workers.

        Raises:
            LoaderError: of a task.
            UsageError: an executor has another Python or loader than the driver.
        """
        if not pieces:
            return []
        run = checked(partial(work_with, self._secrets, work))
        with errors_of_tasks():
            return list(self._context.parallelize(pieces, len(pieces)).mapPartitions(run).collect())

    def limited(self, count: int) -> Workers:
        """See Workers. There are never more tasks than the cluster has slots."""
        return LimitedTasks(self, count)


class LimitedTasks:
    """Runs at most `count` Spark tasks concurrently. Each of `count` threads starts one Spark job per task."""

    def __init__(self, tasks: Tasks, count: int) -> None:
        self.count = count
        self._tasks = tasks
        self._threads = Threads(count)

    def counter(self, start: int) -> Counter:
        """See Tasks."""
        return self._tasks.counter(start)

    def each(self, work: Callable[[_Piece], _Result], pieces: Sequence[_Piece]) -> list[_Result]:
        """Run the work; see Workers. After a failure, no further piece is started."""
        return self._threads.each(lambda piece: self._tasks.each(work, [piece])[0], pieces)

    def limited(self, count: int) -> Workers:
        """See Tasks."""
        return self._tasks.limited(count)


def private_secrets(spark: SparkSession, document: Mapping[str, Any]) -> dict[str, str]:
    """Return the secrets and tokens of the driver for a document; none if others can read Spark's traffic.

    Args:
        spark: of a cluster.
        document: has references to secrets, and addresses of stores; see `hdfs_tokens`.
    """
    if missing_privacy(dict(spark.sparkContext.getConf().getAll())):
        return {}
    return find_secrets(document, without=_OF_THE_DRIVER) | hdfs_tokens(document)


def work_with(secrets: dict[str, str], work: Callable[[_Piece], _Result], piece: _Piece) -> _Result:
    """Return the result of the work on a piece, in a task that gets the secrets of the driver."""
    _speed_up_next_task()
    keep_memory(_KEPT_BY_TASKS)
    keep_secrets(secrets)
    return work(piece)


def _speed_up_next_task() -> None:
    """Spare pyspark work that it does between two tasks of a Python worker, 0.1 seconds each time.

    It collects garbage among the objects of all modules (pyspark/daemon.py), and it makes the importers of zip files,
    such as its own, read their files again (setup_spark_files in pyspark/worker_util.py).
    """
    gc.freeze()
    for path in [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]:
        del sys.path_importer_cache[path]


def workers_of(spark: SparkSession, spec: BaseModel | None = None) -> Workers:
    """Return threads if the driver is also the executor: starting processes takes longer than most intervals."""
    if on_one_machine(spark):
        return Threads(spark.sparkContext.defaultParallelism)
    return Tasks(spark, spec.model_dump() if spec else {})
