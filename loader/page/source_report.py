"""What the pages show of a source: its status and its newest intervals, or the error that reading them raised."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from loader import pipeline
from loader.errors import LoaderError, UnexpectedError
from loader.outages import outage
from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)

NEWEST = 50
"""Intervals on a page."""


@dataclass(frozen=True)
class SourceReport:
    """What is known of a source.

    Attributes:
        source: its name.
        read_at: when `status` was read, in UTC; without one, when reading was tried.
        status: None if it could never be read.
        intervals: the newest ones, oldest first.
        error: why the source could not be read now, in the form of `LoaderError.as_dict()`. Then `status` is older.
    """

    source: str
    read_at: datetime
    status: pipeline.SourceStatus | None = None
    intervals: tuple[pipeline.IntervalActivity, ...] = ()
    error: dict[str, object] | None = None

    def after(self, older: SourceReport | None) -> SourceReport:
        """Return this report; if it has an error only, with what an older report knows."""
        if self.status or older is None or older.status is None:
            return self
        return replace(older, error=self.error)


def read_report(source: str, settings: Callable[[], SourceSettings]) -> SourceReport:
    """Read what the pages show of a source. An error becomes a part of the report.

    Args:
        source: its name.
        settings: returns its settings.
    """
    now = datetime.now(UTC)
    try:
        found = settings()
        return SourceReport(source, now, pipeline.status(found), tuple(pipeline.activity(found, NEWEST)))
    except Exception as error:
        if not isinstance(error, LoaderError):
            _LOG.exception("the source %s could not be read", source)
        return SourceReport(source, now, error=_known(error).as_dict())


def _known(error: Exception) -> LoaderError:
    if isinstance(error, LoaderError):
        return error
    hint = "read the traceback in the output of this process, and report it: this is a bug of the loader"
    return outage(error) or UnexpectedError("the source could not be read", why=type(error).__name__, hint=hint)
