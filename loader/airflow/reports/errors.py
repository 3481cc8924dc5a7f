"""Errors of the loader in Airflow: a task is retried if a retry can help, and fails at once if not.

The path of an error: a Spark job writes it into its result file (`spark.job`). The operator rebuilds the LoaderError,
and `reported` ends the task with it. Its text is the end of the task's log. Tracebacks and Spark's output are in a file
next to that log.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from loader.airflow.reports.work_metrics import send_failure
from loader.airflow.versions import (
    HAS_RETRY_POLICIES,
    AirflowException,
    AirflowFailException,
    AirflowTaskTimeout,
    RetryDecision,
    RetryPolicy,
    config_value,
)
from loader.dag_settings import dag_key
from loader.error_page import ErrorLinks
from loader.errors import LoaderError, RetryableError, UnexpectedError
from loader.log_format import visible_records
from loader.visible_text import visible, visible_lines

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator, Context

_LOG = logging.getLogger(__name__)

ERROR = "error"  # XCom key
UNEXPECTED_TRIES = 3
"""Tries of a task that fails for an unknown reason, which may be temporary."""
RUNBOOK = "docs/runbook.md"
OUTAGE = "The server was down, the password changed, the disk was full"
FAILED = "A run failed"
RUNWAY = "`check_runway` failed"
QUARANTINED = "A table is quarantined, and others go on"
"""Sections of the runbook."""


class TaskFailed(SystemExit):
    """Ends a task with an error of the loader. It has the text of the error.

    Airflow logs the traceback of any other exception after the text that a person needs. For SystemExit, it logs one
    line with the exit code.

    Attributes:
        error: the error that ended the task.
        retry: whether a retry can help.
    """

    def __init__(self, error: LoaderError, *, retry: bool) -> None:
        super().__init__(error.exit_code)
        self.error = error
        self.retry = retry

    def __str__(self) -> str:
        return str(self.error)


class _FinalTaskFailed(TaskFailed, AirflowFailException):
    """Ends a task that is not tried again, in versions of Airflow without retry policies. They log its traceback."""


def task_failed(error: LoaderError, *, retry: bool) -> TaskFailed:
    """Return the exception that ends a task with an error; see TaskFailed."""
    kind = TaskFailed if retry or HAS_RETRY_POLICIES else _FinalTaskFailed
    return kind(error, retry=retry)


class RetryWhereItHelps(RetryPolicy):
    """Fails a task at once if no retry can help. Other errors are retried as often as the task says."""

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
    """Return whether a task with this error is tried again; errors with an unknown reason are, a few times."""
    unexpected = isinstance(error, UnexpectedError) and context["ti"].try_number < UNEXPECTED_TRIES
    return error.retryable or unexpected


def is_tried_again(error: LoaderError, context: Context) -> bool:
    """Return whether a task with this error is tried again now: a retry can help, and this is not the last try."""
    ti = context["ti"]
    return retry_helps(error, context) and ti.try_number <= ti.max_tries


@contextmanager
def reported(context: Context, section: str = "") -> Iterator[None]:
    """End a task whose work fails, with the text of the error as the last lines of the log.

    The error is also the XCom `error` of the task, in the form of `LoaderError.as_dict()`, for users of the API.

    Args:
        context: of the task.
        section: of the runbook about errors of this task; by default a section about errors of that class.

    Raises:
        TaskFailed: the work failed.
    """
    try:
        with visible_records():
            yield
    except AirflowException:  # the task is skipped, deferred or rescheduled
        raise
    except AirflowTaskTimeout as error:
        # It ends Spark. Airflow only does it after an exception of its own.
        cast("BaseOperator", context["task"]).on_kill()
        raise _report_error(_timed_out(error, context), context, section) from None
    except Exception as error:
        known = error if isinstance(error, LoaderError) else _judged(error, context)
        raise _report_error(known, context, section) from None


def _report_error(error: LoaderError, context: Context, section: str) -> TaskFailed:
    """Push the error to XCom, log it, count it, and return the exception that ends the task."""
    context["ti"].xcom_push(key=ERROR, value=error.as_dict())
    _tell(error, details_file(context), section or _section(error), _dag_prefix(context))
    send_failure(context["ti"].dag_id, error)
    return task_failed(error, retry=retry_helps(error, context))


def _timed_out(error: BaseException, context: Context) -> LoaderError:
    """Return the error of a task that ran for too long. Its traceback, which shows where, goes to the details."""
    _keep_traceback(error, context)
    limit = context["task"].execution_timeout
    return RetryableError(
        "the task took longer than its time limit",
        why=f"it was stopped after {limit} (hours:minutes:seconds); the file of details shows what it waited for",
        hint="if the server, the store or the catalog hangs, fix it, then clear this task; finished work is not done"
        " again; if the work needs more time, raise airflow.timeout_hours of the source",
    )


def details_file(context: Context) -> Path:
    """Return the file for tracebacks and Spark's output of this try, next to the log of the task."""
    ti = context["ti"]
    folder = Path(config_value("logging", "base_log_folder"), f"dag_id={ti.dag_id}", f"run_id={ti.run_id}")
    folder = folder / f"task_id={ti.task_id}"
    if (index := ti.map_index) is not None and index >= 0:
        folder = folder / f"map_index={index}"
    return folder / f"attempt={ti.try_number}.details.log"


def _judged(error: Exception, context: Context) -> LoaderError:
    """Return an unknown exception as a LoaderError, and write its traceback to the file of details."""
    from loader.outages import outage
    from loader.refusals import refusal
    from loader.spark.job import carried_error

    _keep_traceback(error, context)
    text = "".join(traceback.format_exception_only(error)).strip()
    hint = "read the traceback in the file of details, and report it: this is a bug of the loader"
    known = carried_error(error) or refusal(error) or outage(error)
    return known or UnexpectedError("the task failed unexpectedly", why=text, hint=hint)


def _keep_traceback(error: BaseException, context: Context) -> None:
    """Write the traceback of an error to the file of details."""
    file = details_file(context)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as details:
        details.writelines(map(visible_lines, traceback.format_exception(error)))


def _section(error: LoaderError) -> str:
    """Return the section of the runbook about errors of a class."""
    from loader.transport.server.connection import AccessDenied

    return OUTAGE if error.retryable or isinstance(error, AccessDenied) else FAILED


def _dag_prefix(context: Context) -> str:
    """Return the prefix of the ids of the DAGs of the task's source. A DAG of a user may have any name."""
    source = getattr(context["task"], "source_name", "")
    return dag_key(source) if source else str(context["ti"].dag_id.rpartition(".")[0])


def _tell(error: LoaderError, details: Path, section: str, dags: str) -> None:
    from loader.airflow.actions.command_forms import in_airflow
    from loader.airflow.sources import docs_url

    for line in str(error).splitlines():
        _LOG.error("%s", line)
    if forms := in_airflow(f"{error.why} {error.hint}", dags):
        _LOG.error("  %s", visible(forms))
    if details.exists():
        _LOG.error("  details: %s", details)
    if link := ErrorLinks(docs_url()).of(error):
        _LOG.error("  read on: %s", link)
    _LOG.error("  read on: %s, section %s", RUNBOOK, section)
