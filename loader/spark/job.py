"""What every Spark job of the loader does around its own work: read a spec, write a result, carry errors out.

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
from loader.outages import outage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spec = TypeVar("Spec", bound=BaseModel)
Result = BaseModel | dict[str, Any]
Starting = Callable[["Future[SparkSession]", Spec], Result]
"""What a job does with a session to come and its spec."""

_MARK = "loader-error:"
_LOG = logging.getLogger(__name__)
_BY_EXIT_CODE: dict[int, type[LoaderError]] = {2: UsageError, 3: RetryableError, 4: DataError}


def job_main(run: Callable[[SparkSession, Spec], Result], spec_type: type[Spec]) -> NoReturn:
    """The whole of a job: `spark-submit job.py --spec FILE --result FILE`. See `starting_main`."""
    starting_main(lambda: (lambda starting, spec: run(starting.result(), spec), spec_type))


def starting_main(imported: Callable[[], tuple[Starting[Spec], type[Spec]]]) -> NoReturn:
    """The same for a job that has something to do while Spark starts, beginning with the imports of what it does.

    The result file is written at once or not at all: what the job returned, or `{"error": LoaderError.as_dict()}`.
    Exits with the error's code, or with the result's `exit_code` where it has one, else 0.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    arguments = parser.parse_args()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in ("py4j", "hdfs"):  # they tell of every connection and of every file
        logging.getLogger(name).setLevel(logging.WARNING)
    result = _outcome(imported, arguments.spec)
    _write(arguments.result, result)
    error = result.get("error")
    gc.freeze()  # to look for garbage once more would be a sixth of a second of an ending process
    sys.exit(int(error["exit_code"] if error else result.get("exit_code", 0)))


def _outcome(imported: Callable[[], tuple[Starting[Spec], type[Spec]]], file: Path) -> dict[str, Any]:
    try:
        _prefer_installed(sys.path, os.environ.get("SPARK_HOME", ""))
        # Not at the top: `loader.spark.submit` reads results with this module, also where there is no Spark.
        from pyspark.sql import SparkSession

        with ThreadPoolExecutor(1) as beside:
            starting = beside.submit(SparkSession.builder.getOrCreate)
            try:
                run, spec_type = imported()
                done = run(starting, _read(spec_type, file))
            finally:
                _stop(starting.result())
    except Exception as error:  # the border of the process: whatever it is becomes the result
        _LOG.error("the job failed", exc_info=error)
        return {"error": failure(error)}
    return done.model_dump(mode="json") if isinstance(done, BaseModel) else done


def _prefer_installed(paths: list[str], spark_home: str) -> None:
    """Import pyspark from where it is installed, if that is the same one, and not from the archive that Spark prefers.

    Out of the archive Python compiles every module anew, which takes longer than all other imports of a job.
    """
    home = Path(spark_home)
    if str(home.parent) in paths:
        paths[:] = [path for path in paths if Path(path).parent != home / "python" / "lib"]


def _stop(spark: SparkSession) -> None:
    """Stop Spark, but not pyspark's server of accumulators, which takes half a second and ends with this process."""
    cast("Any", spark.sparkContext)._accumulatorServer = None
    spark.stop()


def _read(spec_type: type[Spec], file: Path) -> Spec:
    try:
        return spec_type.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise UsageError(f"this is no {spec_type.__name__}", why=str(error), file=file) from error


def _write(file: Path, result: dict[str, Any]) -> None:
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")
    unfinished.replace(file)


def failure(error: BaseException) -> dict[str, Any]:
    """Any exception in the form of `LoaderError.as_dict()`, for a result file; a carried one as what it was."""
    known = error if isinstance(error, LoaderError) else carried_error(error) or outage(error)
    if known is None:
        text = "".join(traceback.format_exception_only(error)).strip()
        known = UnexpectedError("the Spark job failed", why=text, hint="the job's log has the traceback")
    return known.as_dict()


def on_one_machine(spark: SparkSession) -> bool:
    """Whether the driver is the executor too."""
    return str(spark.sparkContext.master).startswith("local")


def rebuild(data: dict[str, Any]) -> LoaderError:
    """The error that `as_dict` was called on; of an unknown type, the nearest one with its exit code."""
    kinds = {kind.__name__: kind for kind in _kinds(LoaderError)}
    kind = kinds.get(data["error"]) or _BY_EXIT_CODE.get(data["exit_code"], LoaderError)
    error = kind(data["what"], why=data["why"], hint=data["hint"])
    error.where = dict(data["where"])  # not as keywords: a place may be called `what`
    return error


def _kinds(kind: type[LoaderError]) -> Iterator[type[LoaderError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


@contextmanager
def carried() -> Iterator[None]:
    """Around the work of a Spark task written in Python: its LoaderError reaches the driver whole.

    pyspark sends only the text of a task's exception to the driver, so the error travels as JSON inside that text.
    Raising it, and not returning it as a value, lets Spark stop the other tasks and retry this one.
    """
    try:
        yield
    except LoaderError as error:
        raise RuntimeError(_MARK + json.dumps(error.as_dict())) from error


def carried_error(error: BaseException) -> LoaderError | None:
    """The LoaderError that a task raised inside `carried()`, found in what Spark raised on the driver."""
    _, mark, text = str(error).partition(_MARK)
    if not mark:
        return None
    data, _ = json.JSONDecoder().raw_decode(text)
    return rebuild(data)
