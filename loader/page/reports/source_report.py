"""What the pages show of a source: its status and its newest intervals, or the error that reading them raised."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from loader import pipeline
from loader.errors import LoaderError, UnexpectedError
from loader.outages import outage
from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)

NEWEST = 50
"""Intervals on a page."""
_TABLES_SECONDS = 30.0
_RARELY = 9
"""What took a second is not read again for nine seconds."""


@dataclass(frozen=True)
class SourceReport:
    """The state of a source.

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


class ReportReader:
    """Reads reports of sources. One thread at a time may read a source.

    A status needs some requests for each table: whether it is exact, and its initial load. So that the lag of a source
    with many tables is always new, these parts are read again only after `seconds`, and for a tenth of the time at
    most.

    Args:
        settings: returns the settings of a source.
        seconds: see above.
    """

    def __init__(self, settings: Callable[[str], SourceSettings], *, seconds: float = _TABLES_SECONDS) -> None:
        self._settings, self._seconds = settings, seconds
        self._known: dict[str, _Known] = {}

    def read(self, source: str) -> SourceReport:
        """Read what the pages show of a source. An error becomes a part of the report."""
        now = datetime.now(UTC)
        try:
            settings = self._settings(source)
            status = self._status(source, settings)
            return SourceReport(source, now, status, tuple(pipeline.activity(settings, NEWEST)))
        except Exception as error:
            if not isinstance(error, LoaderError):
                _LOG.exception("the source %s could not be read", source)
            return SourceReport(source, now, error=_as_known(error).as_dict())

    def _status(self, source: str, settings: SourceSettings) -> pipeline.SourceStatus:
        known, began = self._known.get(source), time.monotonic()
        if known and began < known.until:
            return known.status.model_copy(update=dict(pipeline.source_lag(settings)))
        status = pipeline.status(settings)
        ended = time.monotonic()
        self._known[source] = _Known(status, ended + max(self._seconds, _RARELY * (ended - began)))
        return status


class _Known(NamedTuple):
    """A whole status, and until when its tables and loads are used, by the monotonic clock."""

    status: pipeline.SourceStatus
    until: float


def _as_known(error: Exception) -> LoaderError:
    if isinstance(error, LoaderError):
        return error
    hint = "read the traceback in the output of this process, and report it: this is a bug of the loader"
    return outage(error) or UnexpectedError("the source could not be read", why=type(error).__name__, hint=hint)
