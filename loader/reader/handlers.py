"""Content handlers: what stands between the log and who reads it, and may change, drop or add events."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import cast

from loader.reader.events import Event

Handler = Callable[[Event], Event | None]
"""Takes an event and gives it on, or another in its place, or None for none."""


class ContentHandler:
    """A handler with a method per type of event, called `process_query`, `process_write_rows`, `process_xid`, ...

    An event without such a method goes to `process_event`, which gives it on as it is.
    """

    def __call__(self, event: Event) -> Event | None:
        """See Handler."""
        method = getattr(self, _method(type(event).__name__), self.process_event)
        return cast("Event | None", method(event))

    def process_event(self, event: Event) -> Event | None:
        """What becomes of events that have no method of their own."""
        return event


class Chain:
    """Handlers in their order. Events that are injected come before the next one of the log, through all handlers."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self.handlers = list(handlers)
        self._injected: deque[Event] = deque()

    def inject(self, event: Event) -> None:
        """Put an event before what the log gives next."""
        self._injected.append(event)

    def waiting(self) -> Event | None:
        """The next injected event that the handlers give on."""
        while self._injected:
            if event := self.passed(self._injected.popleft()):
                return event
        return None

    def passed(self, event: Event) -> Event | None:
        """What the handlers make of an event."""
        found: Event | None = event
        for handler in self.handlers:
            if found is None:
                break
            found = handler(found)
        return found


@cache
def _method(kind: str) -> str:
    return "process" + re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), kind.removesuffix("Event"))
