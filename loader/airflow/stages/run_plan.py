"""The plan of a run: its intervals."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)


def plan_run(settings: SourceSettings, run: str, until: str | None) -> dict[str, Any] | None:
    """Choose the intervals of a run, store them under its name, and log them. Return them, or None if there are none.

    The result also has `runway`: how long the server keeps the log that was not staged before. And it has `listed`: the
    captured tables that are not in the warehouse.

    Args:
        settings: of the source.
        run: its name. The same run gets the same intervals again.
        until: the place where the intervals end at the latest, see `loader run --until`; None or empty: the end of the
            log.

    Raises:
        LoaderError: the source was never loaded or cannot be read, or its log does not continue the chain.
    """
    from loader.airflow.connections import secret
    from loader.pipeline import find_log_position, list_tables, plan_interval, source_runway

    with secret(settings.server.password):
        listed = list_tables(settings)
        stop = find_log_position(settings, until) if until else None
        chosen = plan_interval(settings, run=run, until=stop)
        runway = source_runway(settings)
    if chosen is None:
        return None
    _LOG.info("%s interval %s to %s", "new" if chosen.new else "earlier", chosen.start, chosen.stop)
    _LOG.info("%s", runway)
    tables = listed.model_dump(mode="json") if listed else None
    return {**chosen.model_dump(mode="json"), "runway": runway.model_dump(mode="json"), "listed": tables}
