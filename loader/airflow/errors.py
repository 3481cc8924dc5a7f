"""Errors of the loader as Airflow understands them: retried where a retry can help, failed at once where it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from loader.errors import LoaderError

if TYPE_CHECKING:
    from airflow.sdk import Context

ERROR = "error"  # XCom key


@contextmanager
def reported(context: Context) -> Iterator[None]:
    """Around the work of a task: a LoaderError ends it, with its whole text.

    The error is also the task's XCom `error`, in the form of `LoaderError.as_dict()`, for whoever asks the API.

    Raises:
        AirflowException: a retry can help.
        AirflowFailException: it cannot; Airflow fails the task at once.
    """
    try:
        yield
    except LoaderError as error:
        context["ti"].xcom_push(key=ERROR, value=error.as_dict())
        raise (AirflowException if error.retryable else AirflowFailException)(str(error)) from error
