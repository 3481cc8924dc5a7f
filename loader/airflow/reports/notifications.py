"""Notifications: of failed tasks, quarantined tables, schema changes, lag and runway.

Each cause is told once until it is over, and not in each run that meets it; see `notices`. If a notification cannot be
sent, the task logs why, and the next run tries it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk.bases.notifier import BaseNotifier

from loader.airflow.reports.errors import ERROR
from loader.airflow.reports.notices import Notices
from loader.dag_settings import NotifierSettings
from loader.errors import LoaderError, UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.airflow.reports.events import Event, EventFactory
    from loader.pipeline import SourceLag
    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)
_CAUSE = ("error", "what", "why", "where")
"""The fields of an error that tell causes apart."""
_MOST = 20
"""Events of one kind that a task tells one by one. One more event names the others."""
TOLD = "told"  # XCom key
"""What a task pushes if other events told the cause of its failure."""


def make_notifier(source: str, settings: NotifierSettings) -> BaseNotifier:
    """Return the configured notifier.

    Raises:
        UsageError: it cannot be created.
    """
    try:
        module, _, name = settings.type.rpartition(".")
        return cast("BaseNotifier", getattr(import_module(module), name)(**settings.arguments))
    except Exception as error:  # the class is not ours
        raise UsageError(
            "the notifier cannot be created",
            why=f"{settings.type}: {type(error).__name__}: {error}",
            hint=f"correct sources.{source}.airflow.notifier, or install the provider of that class",
            source=source,
        ) from error


class FailureNotifier:
    """Callback of a failed task: calls a notifier, unless the same cause was told and the task did not succeed since.

    Args:
        source: its name.
        notifier: what to call.
    """

    def __init__(self, source: str, notifier: BaseNotifier) -> None:
        self.source, self.notifier = source, notifier

    def __call__(self, context: Context) -> None:
        """Notify. The last lines of the task's log stay those of the error, so nothing else is logged there."""
        task = _task(context)
        error: dict[str, Any] | None = None
        told: Any = None
        with _harmless():
            ti: Any = context["ti"]
            error = ti.xcom_pull(task_ids=ti.task_id, key=ERROR)
            if ti.xcom_pull(task_ids=ti.task_id, key=TOLD):
                _LOG.debug("no notification: other events told the cause")
                return
            told = Notices(self.source).get(f"failed.{task}")
        if error and told == _cause(error):
            _LOG.debug("no notification: the task failed before for the same cause")
            return
        if send(self.notifier, context, _factory(self.source).failure(task, error)):
            with _harmless():
                Notices(self.source).put(f"failed.{task}", _cause(error or {}))


class RecoveryNote:
    """Callback of a task that succeeded: the next failure is told, also for the same cause as the last one.

    Args:
        source: its name.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def __call__(self, context: Context) -> None:
        """Forget the last failure."""
        with _harmless():
            Notices(self.source).end(f"failed.{_task(context)}")


class SourceNotifier:
    """Tells the events of a source.

    Args:
        source: its name.
        notifier: what to call.
        context: of the task that tells them.
    """

    def __init__(self, source: str, notifier: BaseNotifier, context: Context) -> None:
        self._notifier, self._context = notifier, context
        self._notices, self._events = Notices(source), _factory(source)

    def quarantines(self, settings: SourceSettings) -> None:
        """Tell the tables that were quarantined since the last call, and forget those that are released."""
        from loader.pipeline import quarantines_of

        stopped = quarantines_of(settings).all().values()
        known = self._notices.get("quarantines") or {}
        new = [one for one in stopped if known.get(one.table) != str(one.since)]
        sent = self._send([self._events.quarantine(one) for one in new])
        unsent = {one.table for one, is_sent in zip(new, sent, strict=True) if not is_sent}
        told = {one.table: str(one.since) for one in stopped if one.table not in unsent}
        if told != known:
            self._note("quarantines", told)

    def schema_changes(self, settings: SourceSettings, since: int) -> None:
        """Tell the statements that tables have now. `since`: the seqno after which they count in the first call."""
        from loader.pipeline import AppliedUpTo, applied_statements

        noted = self._notices.get("schema_changes")
        before = AppliedUpTo.model_validate(noted) if noted else AppliedUpTo(stop_seqno=since)
        found = applied_statements(settings, before)
        if all(self._send([self._events.schema_change(one) for one in found.statements])) and found.applied != before:
            self._notices.put("schema_changes", found.applied.model_dump(mode="json"))

    def lag(self, lag: SourceLag, seconds: float | None, limit_minutes: float) -> None:
        """Tell a lag above its limit; None is an unknown lag, which ends nothing."""
        if seconds is not None:
            is_high = seconds > limit_minutes * 60
            self._while("lag", self._events.lag(lag, seconds, limit_minutes) if is_high else None)

    def runway(self, error: LoaderError | None, position: str) -> bool:
        """Tell a runway below its limit, or with None that it is above. Return whether it is told."""
        return self._while("runway", self._events.runway(error, position) if error else None)

    def has_told(self, tables: Sequence[str]) -> bool:
        """Return whether the quarantines of all these tables were told."""
        return set(tables) <= set(self._notices.get("quarantines") or ())

    def _while(self, name: str, event: Event | None) -> bool:
        """Tell an event once, until it is None. Return whether it is told."""
        if event is None:
            self._notices.end(name)
            return False
        told = self._notices.get(name) is not None
        if not told and (told := all(self._send([event]))):
            self._notices.put(name, event.title)
        return told

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
    from loader.airflow.sources import dag_settings

    with _harmless():
        settings = dag_settings(source).notifier
        if settings.type:
            tell(SourceNotifier(source, make_notifier(source, settings), context))


def send(notifier: BaseNotifier, context: Context, event: Event) -> bool:
    """Send an event, and return whether that worked. Rendering changes a notifier, so a copy of it is used."""
    one = copy(notifier)
    # {{ exception }} is the text of every event, so that one template fits all.
    given = cast("Context", {**context, "event": event, "exception": context.get("exception") or str(event)})
    try:
        one._update_context(given)
        one.render_template_fields(given)
        one.notify(given)
    except Exception as error:  # the class is not ours
        _LOG.warning("the notification cannot be sent: %s: %s", type(error).__name__, error)
        return False
    return True


@contextmanager
def _harmless() -> Iterator[None]:
    """Log what prevents a notification: it must not fail the task."""
    try:
        yield
    except Exception as error:
        _LOG.warning("notifications: %s: %s", type(error).__name__, error)


def _factory(source: str) -> EventFactory:
    from loader.airflow.reports.events import EventFactory
    from loader.airflow.sources import docs_url
    from loader.error_page import ErrorLinks

    return EventFactory(source, ErrorLinks(docs_url()))


def _task(context: Context) -> str:
    """Return the name of a task, with its place in a mapped task."""
    ti: Any = context["ti"]
    index = getattr(ti, "map_index", None)
    name = f"{getattr(ti, 'dag_id', '')}.{ti.task_id}".lstrip(".")
    return name if index is None or index < 0 else f"{name}.{index}"


def _cause(error: Mapping[str, Any]) -> list[Any]:
    return [error.get(name) for name in _CAUSE]
