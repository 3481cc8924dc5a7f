"""Errors of the loader as Airflow understands them: retried where a retry can help, failed at once where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from loader.errors import LoaderError, UnexpectedError

if TYPE_CHECKING:
    from airflow.sdk import Context

ERROR = "error"  # XCom key
UNEXPECTED_TRIES = 3
"""Of a task that failed for a reason that nobody knows; the reason may be a passing one."""


@contextmanager
def reported(context: Context) -> Iterator[None]:
    """Around the work of a task: a LoaderError ends it, with its whole text.

    The error is also the task's XCom `error`, in the form of `LoaderError.as_dict()`, for whoever asks the API.

    Raises:
        AirflowException: a retry can help, or nobody knows and the task was not tried often yet.
        AirflowFailException: it cannot; Airflow fails the task at once.
    """
    try:
        yield
    except LoaderError as error:
        context["ti"].xcom_push(key=ERROR, value=error.as_dict())
        again = error.retryable or (isinstance(error, UnexpectedError) and context["ti"].try_number < UNEXPECTED_TRIES)
        raise (AirflowException if again else AirflowFailException)(str(error)) from error
