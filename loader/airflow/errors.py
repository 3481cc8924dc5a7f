"""Errors of the loader as Airflow understands them: retried where a retry can help, failed at once where it cannot.

The way of an error: a Spark job writes it into its result file (`spark.job`). The operator makes a LoaderError of
it, and `reported` ends the task with it. Its text is the end of the task's log. Tracebacks and Spark's output are in a
file next to that log.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy
from airflow.sdk.exceptions import AirflowException

from loader.errors import LoaderError, UnexpectedError
from loader.log_format import visible_records

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOG = logging.getLogger(__name__)

ERROR = "error"  # XCom key
UNEXPECTED_TRIES = 3
"""Of a task that failed for a reason that nobody knows; the reason may be a passing one."""
RUNBOOK = "docs/runbook.md"
OUTAGE = "The server was down, the password changed, the disk was full"
FAILED = "A run of `continuous_delta` failed"
RUNWAY = "`check_runway` failed"
QUARANTINED = "A table is quarantined, and others go on"
"""Sections of the runbook."""


class TaskFailed(SystemExit):
    """The end of a task by an error of the loader, whose text it has.

    Airflow logs the traceback of any other exception, below the text that a person needs. SystemExit it takes for
    the end of the task, with a line that has the exit code.

    Attributes:
        error: what ended the task.
        retry: whether trying again can help.
    """

    def __init__(self, error: LoaderError, *, retry: bool) -> None:
        super().__init__(error.exit_code)
        self.error = error
        self.retry = retry

    def __str__(self) -> str:
        return str(self.error)


class RetryWhereItHelps(RetryPolicy):
    """Fails a task at once whose error no retry can help; everything else is retried as often as the task says."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """See RetryPolicy."""
        final = isinstance(exception, TaskFailed) and not exception.retry
        return RetryDecision.fail() if final else RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """See RetryPolicy; it has no settings."""
        return {}


def retry_helps(error: LoaderError, context: Context) -> bool:
    """Return whether a task with this error is worth another try: nobody knows the reason of some errors."""
    unexpected = isinstance(error, UnexpectedError) and context["ti"].try_number < UNEXPECTED_TRIES
    return error.retryable or unexpected


@contextmanager
def reported(context: Context, section: str = "") -> Iterator[None]:
    """Around the work of a task: an error ends it, with its whole text as the last lines of the log.

    `section`: of the runbook about errors of this task; without one, a section about errors of that class.

    The error is also the task's XCom `error`, in the form of `LoaderError.as_dict()`, for whoever asks the API.

    Raises:
        TaskFailed: the work failed.
    """
    try:
        with visible_records():
            yield
    except AirflowException:  # a task that is skipped, deferred or put off
        raise
    except Exception as error:
        known = error if isinstance(error, LoaderError) else _judged(error, context)
        context["ti"].xcom_push(key=ERROR, value=known.as_dict())
        _tell(known, details_file(context), section or (OUTAGE if known.retryable else FAILED))
        raise TaskFailed(known, retry=retry_helps(known, context)) from None


def details_file(context: Context) -> Path:
    """The file of this try for tracebacks and Spark's output, next to the log of the task."""
    from airflow.sdk.configuration import conf

    ti = context["ti"]
    folder = Path(conf.get("logging", "base_log_folder"), f"dag_id={ti.dag_id}", f"run_id={ti.run_id}")
    folder = folder / f"task_id={ti.task_id}"
    if (index := ti.map_index) is not None and index >= 0:
        folder = folder / f"map_index={index}"
    return folder / f"attempt={ti.try_number}.details.log"


def _judged(error: Exception, context: Context) -> LoaderError:
    """An exception that is no LoaderError as one; its traceback goes to the file of details."""
    from loader.outages import outage
    from loader.spark.job import carried_error

    file = details_file(context)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as details:
        details.writelines(traceback.format_exception(error))
    text = "".join(traceback.format_exception_only(error)).strip()
    hint = "read the traceback in the file of details, and report it: this is a fault of the loader"
    known = carried_error(error) or outage(error)
    return known or UnexpectedError("the task failed in a way that nobody foresaw", why=text, hint=hint)


def _tell(error: LoaderError, details: Path, section: str) -> None:
    for line in str(error).splitlines():
        _LOG.error("%s", line)
    if details.exists():
        _LOG.error("  details: %s", details)
    _LOG.error("  read on: %s, section %s", RUNBOOK, section)
