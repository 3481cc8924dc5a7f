"""The frame of every Spark job of the loader: read a spec, write a result, report errors.

A job module ends in `job_main(run, Spec)`. `loader.spark.submit.run` starts it and reads the result.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from pydantic import BaseModel, ValidationError

from loader.errors import DataError, LoaderError, RetryableError, UnexpectedError, UsageError
from loader.log_format import VisibleFormatter
from loader.outages import ended_application, outage
from loader.refusals import refusal
from loader.spark.yarn import hdfs_refusal
from loader.store.registry import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spec = TypeVar("Spec", bound=BaseModel)
Result = BaseModel | dict[str, Any]
Starting = Callable[["Future[SparkSession]", Spec], Result]
"""The work of a job, given a session that is starting and the spec."""

ERROR_MARK = "loader-error:"
"""What precedes a LoaderError as JSON in the text of an exception."""
HISTORY = "Spark's history of this application: "
"""What precedes the address of the application's page on the history server, in a line of the log."""
STARTED = "Spark has started"
_LOG = logging.getLogger(__name__)
_BY_EXIT_CODE: dict[int, type[LoaderError]] = {2: UsageError, 3: RetryableError, 4: DataError}


def job_main(run: Callable[[SparkSession, Spec], Result], spec_type: type[Spec]) -> NoReturn:
    """Run a job: `spark-submit job.py --spec FILE --result FILE [--store ADDRESS]`. See `starting_main`."""
    starting_main(lambda: (lambda starting, spec: run(starting.result(), spec), spec_type))


def starting_main(imported: Callable[[], tuple[Starting[Spec], type[Spec]]]) -> NoReturn:
    """Run a job that works while Spark starts, at least by importing its modules.

    The result is written atomically: a file, or an object of a store. It holds the result of the job, or
    `{"error": LoaderError.as_dict()}`. The exit code is that of the error, else the `exit_code` of the result, else 0.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--result", required=True)
    parser.add_argument("--store", default="")
    arguments = parser.parse_args()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("py4j", "hdfs"):  # they log every connection and every file
        logging.getLogger(name).setLevel(logging.WARNING)
    result = _outcome(imported, arguments.spec)
    _write(arguments.result, arguments.store, result)
    error = result.get("error")
    gc.freeze()  # another garbage collection would cost a sixth of a second at exit
    sys.exit(int(error["exit_code"] if error else result.get("exit_code", 0)))


def _outcome(imported: Callable[[], tuple[Starting[Spec], type[Spec]]], file: Path) -> dict[str, Any]:
    try:
        _prefer_installed(sys.path, os.environ.get("SPARK_HOME", ""))
        # Imported here, because `loader.spark.submit` uses this module also without Spark.
        from pyspark.sql import SparkSession

        with ThreadPoolExecutor(1) as beside:
            starting = beside.submit(_start, SparkSession.builder.getOrCreate)
            try:
                run, spec_type = imported()
                done = run(starting, _read(spec_type, file))
            finally:
                _stop(starting.result())
    except Exception as error:  # the border of the process: every exception becomes the result
        _LOG.error("the job failed", exc_info=error)
        return {"error": failure(error)}
    return done.model_dump(mode="json") if isinstance(done, BaseModel) else done


def _start(create: Callable[[], SparkSession]) -> SparkSession:
    try:
        spark = create()
    except Exception as error:
        if refused := hdfs_refusal(error):
            raise refused from error
        raise
    _LOG.info(STARTED)
    if page := _history_page(spark):
        _LOG.info("%s%s", HISTORY, page)
    return spark


def _history_page(spark: SparkSession) -> str:
    """Return the page of the application on Spark's history server; empty without an event log or a server.

    Spark itself uses the address on YARN only. Elsewhere it ignores the property, so it can be set there as well.
    """
    context = cast("Any", spark.sparkContext)
    address = str(context._conf.get("spark.yarn.historyServer.address", ""))
    if context._conf.get("spark.eventLog.enabled", "false") != "true" or not address or "${" in address:
        return ""
    server = address if "://" in address else f"http://{address}"
    return f"{server.rstrip('/')}/history/{context.applicationId}/jobs/"


def _prefer_installed(paths: list[str], spark_home: str) -> None:
    """Import the installed pyspark, if it is the same, and not the archive that Spark prefers.

    From the archive, Python compiles every module again, which takes longer than all other imports of a job.
    """
    home = Path(spark_home)
    if str(home.parent) in paths:
        paths[:] = [path for path in paths if Path(path).parent != home / "python" / "lib"]


def _stop(spark: SparkSession) -> None:
    """Stop Spark without pyspark's accumulator server, which takes half a second and ends with this process."""
    cast("Any", spark.sparkContext)._accumulatorServer = None
    spark.stop()


def _read(spec_type: type[Spec], file: Path) -> Spec:
    try:
        return spec_type.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise UsageError(f"the spec is not a valid {spec_type.__name__}", why=str(error), file=file) from error


def _write(name: str, store: str, result: dict[str, Any]) -> None:
    """Write a result to the file of that name or, if a store is given, to the object with that key."""
    data = json.dumps(result, ensure_ascii=False).encode()
    if store:
        open_store(store).create(name, data)
        return
    unfinished = Path(name + ".unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(name)


def failure(error: BaseException) -> dict[str, Any]:
    """Return any exception in the form of `LoaderError.as_dict()`, for a result file."""
    known = error if isinstance(error, LoaderError) else carried_error(error) or refusal(error) or outage(error)
    if known is None and _is_stopped():
        known = ended_application(error)
    if known is None:
        text = "".join(traceback.format_exception_only(error)).strip()
        known = UnexpectedError("the Spark job failed", why=text, hint="the job's log has the traceback")
    return known.as_dict()


def _is_stopped() -> bool:
    """Return whether Spark has stopped its application after an error of its own. Then any call may fail in any way."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    context = cast("Any", SparkContext)._active_spark_context
    try:
        return context is not None and bool(context._jsc.sc().isStopped())
    except Py4JError:  # the JVM has ended
        return True


def on_one_machine(spark: SparkSession) -> bool:
    """Return whether the driver is also the executor."""
    return is_local(str(spark.sparkContext.master))


def is_local(master: str) -> bool:
    """Return whether driver and executors are one process. `local-cluster[...]` starts executors."""
    return master == "local" or master.startswith("local[")


def rebuild(data: dict[str, Any]) -> LoaderError:
    """Return the error that `as_dict` was called on. An unknown type becomes the known type with its exit code."""
    kinds = {kind.__name__: kind for kind in _kinds(LoaderError)}
    kind = kinds.get(data["error"]) or _BY_EXIT_CODE.get(data["exit_code"], LoaderError)
    error = kind(data["what"], why=data["why"], hint=data["hint"])
    error.where = dict(data["where"])  # not as keywords: a key may be `what`
    return error


def _kinds(kind: type[LoaderError]) -> Iterator[type[LoaderError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


@contextmanager
def carried() -> Iterator[None]:
    """Pass a LoaderError of a Python Spark task to the driver, complete.

    pyspark sends only the text of an exception to the driver, so the text contains the error as JSON. The error is
    raised and not returned, so that Spark stops the other tasks and retries this one.
    """
    try:
        yield
    except LoaderError as error:
        raise RuntimeError(ERROR_MARK + json.dumps(error.as_dict())) from error


def carried_error(error: BaseException) -> LoaderError | None:
    """Return the LoaderError that a task raised inside `carried()`, from the exception on the driver, or None."""
    _, mark, text = str(error).partition(ERROR_MARK)
    if not mark:
        return None
    data, _ = json.JSONDecoder().raw_decode(text)
    return rebuild(data)
