"""Notifications of quarantined tables, schema changes, lag and runway, for tasks. See `failure_notifier` for failures.

Each cause is notified once until it is resolved, and not in each run that meets it; see `notices`. If a notification
cannot be sent, the next run tries it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.notifier import BaseNotifier

from loader.airflow.reports.notices import Notices
from loader.airflow.reports.notifier_calls import event_factory, logged_failures, make_notifier, send

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.airflow.reports.events import Event
    from loader.errors import LoaderError
    from loader.pipeline import SourceLag
    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)
_MOST = 20
"""Events of one kind that a task tells one by one. One more event names the others."""


class SourceNotifier:
    """Sends notifications of the events of a source.

    Args:
        source: its name.
        notifier: what to call.
        context: of the task that sends them.
    """

    def __init__(self, source: str, notifier: BaseNotifier, context: Context) -> None:
        self._notifier, self._context = notifier, context
        self._notices, self._events = Notices(source), event_factory(source)

    def quarantines(self, settings: SourceSettings) -> None:
        """Notify of the tables that were quarantined since the last call, and forget the released ones."""
        from loader.pipeline import quarantines_of

        stopped = quarantines_of(settings).all().values()
        known = self._notices.get("quarantines") or {}
        new = [one for one in stopped if known.get(one.table) != str(one.since)]
        sent = self._send([self._events.quarantine(one) for one in new])
        unsent = {one.table for one, is_sent in zip(new, sent, strict=True) if not is_sent}
        notified = {one.table: str(one.since) for one in stopped if one.table not in unsent}
        if notified != known:
            self._note("quarantines", notified)

    def schema_changes(self, settings: SourceSettings, since: int) -> None:
        """Notify of the newly applied statements. `since`: the seqno after which they count in the first call."""
        from loader.pipeline import AppliedUpTo, applied_statements

        noted = self._notices.get("schema_changes")
        before = AppliedUpTo.model_validate(noted) if noted else AppliedUpTo(stop_seqno=since)
        found = applied_statements(settings, before)
        known = set((found.statements and self._notices.get("schema_changes.sent")) or ())
        new = {key: one for one in found.statements if (key := f"{one.position} {', '.join(one.tables)}") not in known}
        sent = self._send([self._events.schema_change(one) for one in new.values()])
        if not all(sent):
            self._note(
                "schema_changes.sent", sorted(known.union(key for key, done in zip(new, sent, strict=True) if done))
            )
            return
        if known:
            self._notices.end("schema_changes.sent")
        if found.applied != before:
            self._notices.put("schema_changes", found.applied.model_dump(mode="json"))

    def lag(self, lag: SourceLag, seconds: float | None, limit_minutes: float) -> None:
        """Notify of a lag above its limit; None is an unknown lag, which ends nothing."""
        if seconds is not None:
            is_high = seconds > limit_minutes * 60
            self._while("lag", self._events.lag(lag, seconds, limit_minutes) if is_high else None)

    def runway(self, error: LoaderError | None, position: str) -> bool:
        """Notify of a runway below its limit. None: it is above. Return whether the low runway was notified."""
        return self._while("runway", self._events.runway(error, position) if error else None)

    def has_notified(self, tables: Sequence[str]) -> bool:
        """Return whether the quarantines of all these tables were notified."""
        return set(tables) <= set(self._notices.get("quarantines") or ())

    def _while(self, name: str, event: Event | None) -> bool:
        """Notify of an event once, until it is None. Return whether it was notified."""
        if event is None:
            self._notices.end(name)
            return False
        notified = self._notices.get(name) is not None
        if not notified and (notified := all(self._send([event]))):
            self._notices.put(name, event.title)
        return notified

    def _note(self, name: str, value: Any) -> None:
        if value:
            self._notices.put(name, value)
        else:
            self._notices.end(name)

    def _send(self, events: Sequence[Event]) -> list[bool]:
        """Send events, and return which were sent. Beyond a number of them, one event stands for the rest."""
        found = [send(self._notifier, self._context, event) for event in events[:_MOST]]
        for event, is_sent in zip(events, found, strict=False):
            if is_sent:
                _LOG.info("notified: %s", event.title)
        if rest := events[_MOST:]:
            found += [send(self._notifier, self._context, self._events.more(rest))] * len(rest)
        return found


def notify(context: Context, source: str, tell: Callable[[SourceNotifier], None]) -> None:
    """Tell events of a source from a task, if the source has a notifier. Nothing of it fails the task."""
    from loader.airflow.sources import dag_settings_of

    with logged_failures():
        settings = dag_settings_of(source).notifier
        if settings.type:
            tell(SourceNotifier(source, make_notifier(source, settings), context))
