"""Calls of the notifier of a source. If a notification cannot be sent, the task logs why, and nothing fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, cast

from airflow.sdk.bases.notifier import BaseNotifier

from loader.dag_settings import NotifierSettings
from loader.errors import UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.airflow.reports.events import Event, EventFactory

_LOG = logging.getLogger(__name__)


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
def logged_failures() -> Iterator[None]:
    """Log what prevents a notification: it must not fail the task."""
    try:
        yield
    except Exception as error:
        _LOG.warning("notifications: %s: %s", type(error).__name__, error)


def event_factory(source: str) -> EventFactory:
    """Return the factory of the events of a source. It is imported when it is needed, so DAG files stay light."""
    from loader.airflow.reports.events import EventFactory
    from loader.airflow.sources import docs_url
    from loader.error_page import ErrorLinks

    return EventFactory(source, ErrorLinks(docs_url()))
