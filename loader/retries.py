"""Repeats work that failed for a reason outside it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from loader.errors import LoaderError
from loader.outages import outage

_Result = TypeVar("_Result")
_LOG = logging.getLogger(__name__)
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 16.0
_UNKNOWN_TRIES = 3


class Retries:
    """The repetition of a run's work. Safe for threads.

    Work that an outage stopped is tried again after pauses that double from 1 s to 16 s, until the run has paused for
    `seconds` in all: so an outage that lasts fails a run with many tables as soon as a run with one. Work that failed
    for an unknown reason is tried three times. A LoaderError is never repeated: whoever raised it knows its cause.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        self._left = seconds
        self._lock = Lock()

    def call(self, work: Callable[[], _Result]) -> _Result:
        """Return what the work returns.

        Raises:
            Exception: what the last try raised.
        """
        tries = 0
        while True:
            try:
                return work()
            except LoaderError:
                raise
            except Exception as error:
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
        """The seconds to pause after that many tries; None when the run has none left."""
        with self._lock:
            pause = min(_FIRST_PAUSE_SECONDS * 2 ** (tries - 1), _LONGEST_PAUSE_SECONDS, self._left)
            self._left -= pause
            return pause or None
