"""Python on the executors of a cluster: where it comes from, and whether it has the loader of the driver."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from loader import __version__
from loader.errors import LoaderError, UsageError
from loader.spark.job import ERROR_MARK, carried_error

ARCHIVE = "loader"
"""Folder of the unpacked archive, in the working folder of an executor."""
_CURE = "make one archive for all machines with: loader package; then set spark.package to it"
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\W+(?P<why>[^\n]*)")
_NO_PYTHON = re.compile(r'Cannot run program "(?P<program>[^"]+)"[^\n]*')


def python_conf(package: str, python: str, *, on_yarn: bool, driver_elsewhere: bool = False) -> dict[str, str]:
    """Return the properties of Spark that choose the Python of executors and driver.

    Args:
        package: address or path of an archive of `loader package`; empty without one.
        python: a Python program on each machine; empty for the path of this process's program.
        on_yarn: whether YARN brings the archive to each machine, once for many jobs. By `spark.archives` every executor
            of YARN would also unpack it.
        driver_elsewhere: whether the driver also runs on a machine of the cluster.
    """
    program = f"./{ARCHIVE}/bin/python" if package else python
    if not program:
        return {}
    of_driver = program if driver_elsewhere else sys.executable
    chosen = {"spark.pyspark.python": program, "spark.pyspark.driver.python": of_driver}
    archives = "spark.yarn.dist.archives" if on_yarn else "spark.archives"
    return chosen | ({archives: f"{package}#{ARCHIVE}"} if package else {})


def checked(work: Callable[[Any], Any], *, flat: bool = False) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for Spark tasks that refuses another version of the loader, then does work on each piece.

    pyspark sends this function as code and not by its name, because an executor may lack the loader.

    Args:
        work: gets a piece and returns its result.
        flat: the work returns several results, and the function yields each of them.
    """
    pickler: Any = import_module("pyspark.cloudpickle")  # only clusters need it
    data = pickler.dumps(work)
    driver, machine, error, mark = __version__, platform.node(), refusal("").as_dict(), ERROR_MARK

    def run(pieces: Iterable[Any]) -> Iterator[Any]:
        import json
        import pickle
        import platform

        try:
            from loader import __version__ as found
        except ImportError as missing:
            found = f"none ({missing})"
        if found != driver:
            why = f"the executor on {platform.node()} has binlog-loader {found}, the driver on {machine} has {driver}"
            raise RuntimeError(mark + json.dumps({**error, "why": why}))
        from loader.spark.job import carried

        with carried():
            for result in map(pickle.loads(data), pieces):  # noqa: S301 - the driver has sent it, as all tasks
                yield from result if flat else (result,)

    return run


def refusal(why: str) -> LoaderError:
    """Return the error about executors that cannot run the tasks of this driver."""
    return UsageError("executors of Spark lack the driver's version of Python or of the loader", why=why, hint=_CURE)


@contextmanager
def errors_of_tasks() -> Iterator[None]:
    """Raise the errors of tasks instead of the exceptions of Spark that have their text.

    Raises:
        LoaderError: of a task.
        UsageError: an executor has another Python or loader than the driver.
    """
    try:
        yield
    except Exception as error:
        if known := _task_error(error):
            raise known from error
        raise


def _task_error(error: BaseException) -> LoaderError | None:
    """Return the LoaderError that a task raised inside `carried`, or the refusal of the Python of its executor."""
    return carried_error(error) or _python_error(str(error))


def _python_error(text: str) -> LoaderError | None:
    if other := _OTHER_PYTHON.search(text):
        return refusal(other["why"])
    if missing := _NO_PYTHON.search(text):
        return refusal(missing[0])
    return None
