"""Retries of work after outages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from loader.errors import LoaderError
from loader.outages import outage
from loader.refusals import refusal

_Result = TypeVar("_Result")
_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 16.0
_UNKNOWN_TRIES = 3


class Retries:
    """The retries of a run, shared by its threads.

    After an outage, work is tried again with pauses that double from 1 s to 16 s, until the run has paused for
    `seconds` in total. So a long outage fails a run with many tables as soon as a run with one table. Work that failed
    for an unknown reason is tried three times. A LoaderError or a refusal is never retried, because its cause is known.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        self._left = seconds
        self._lock = Lock()

    def call(self, work: Callable[[], _Result]) -> _Result:
        """Do the work with retries, and return its result.

        Raises:
            Exception: the exception of the last try.
        """
        tries = 0
        while True:
            try:
                return work()
            except LoaderError:
                raise
            except Exception as error:
                if refusal(error):
                    raise
                tries += 1
                known = outage(error)
                if known is None and tries == _UNKNOWN_TRIES:
                    raise
                pause = self._taken(tries)
                if pause is None:
                    raise
                _LOG.warning("tried again in %.0f s: %s", pause, known or error)
            time.sleep(pause)

    def _taken(self, tries: int) -> float | None:
        """Return the seconds to pause after that many tries, or None if the run has paused long enough."""
        with self._lock:
            pause = min(_FIRST_PAUSE_SECONDS * 2 ** (tries - 1), _LONGEST_PAUSE_SECONDS, self._left)
            self._left -= pause
            return pause or None
