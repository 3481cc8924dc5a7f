"""Content handlers: they get the events of the log before the reader does, and can change, drop or add events."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from typing import cast

from loader.reader.events import Event

Handler = Callable[[Event], Event | None]
"""Takes an event; returns it, or another event instead, or None to drop it."""


class ContentHandler:
    """A handler with a method per event class: `process_query`, `process_write_rows`, `process_xid`, ...

    Events without a method go to `process_event`, which returns them unchanged.
    """

    def __call__(self, event: Event) -> Event | None:
        """See Handler."""
        method = getattr(self, _method(type(event).__name__), self.process_event)
        return cast("Event | None", method(event))

    def process_event(self, event: Event) -> Event | None:
        """Handle an event that has no method of its own."""
        return event


class Chain:
    """Passes events through handlers, in order. Injected events come before the next event of the log."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self.handlers = list(handlers)
        self._injected: deque[Event] = deque()

    def inject(self, event: Event) -> None:
        """Insert an event before the next one of the log."""
        self._injected.append(event)

    def waiting(self) -> Event | None:
        """Return the next injected event that the handlers do not drop; None if there is none."""
        while self._injected:
            if event := self.passed(self._injected.popleft()):
                return event
        return None

    def passed(self, event: Event) -> Event | None:
        """Pass an event through all handlers; None if one drops it."""
        found: Event | None = event
        for handler in self.handlers:
            if found is None:
                break
            found = handler(found)
        return found


@cache
def _method(kind: str) -> str:
    return "process" + re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), kind.removesuffix("Event"))
