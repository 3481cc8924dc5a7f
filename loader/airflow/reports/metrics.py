"""Gauges of a source, sent through Airflow's metrics: StatsD, OpenTelemetry or Datadog, as Airflow is configured."""

from __future__ import annotations

import logging
from math import isfinite

from loader.airflow.connections import secret
from loader.airflow.reports.work_metrics import metrics_prefix
from loader.airflow.versions import stats_client
from loader.errors import LoaderError
from loader.pipeline import SourceLag, gauges, source_lag
from loader.settings import SourceSettings

_LOG = logging.getLogger(__name__)


def report_lag(settings: SourceSettings) -> SourceLag | None:
    """Send the gauges of a source, and return how far it is behind. If that is not known, log why and return None.

    A gauge has the name `binlog_loader.<source>.<gauge>`: StatsD has no labels. Infinite values are not sent.
    """
    try:
        with secret(settings.server.password):
            lag = source_lag(settings)
    except LoaderError as error:
        _LOG.warning("the lag is not known: %s", error.what)
        return None
    for gauge in gauges(lag):
        if not gauge.labels and isfinite(gauge.value):
            stats_client().gauge(f"{metrics_prefix(settings.name)}.{gauge.name}", gauge.value)
    return lag
