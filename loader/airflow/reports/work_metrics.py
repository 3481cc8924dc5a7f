"""What tasks did and why they failed, sent through Airflow's metrics as counters and timers.

StatsD has no labels, so there a counter is the sum over all tables. OpenTelemetry and Datadog have the labels `table`
and `operation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from loader.airflow.versions import stats_client
from loader.dag_settings import dag_key
from loader.errors import LoaderError

_OPERATIONS = {"inserts": "insert", "updates": "update", "deletes": "delete", "rows": "read"}
_COUNTED = {"staged", "applied"}


def metrics_prefix(source: str) -> str:
    """Return what the names of a source's metrics begin with. A dot separates levels of a name."""
    return f"binlog_loader.{dag_key(source).replace('.', '__')}"


def send_work(source: str, use_case: str, result: Mapping[str, Any], seconds: float) -> None:
    """Send rows, bytes and seconds of a use case. Work that an earlier try or run did is not counted again.

    The names are `binlog_loader.<source>.<use case>.` with `rows`, `staged_bytes`, `bytes` (of log), `seconds` or
    `table_seconds`.

    Args:
        source: its name.
        use_case: of the operator, such as `extract`.
        result: of its job.
        seconds: that the use case took, with the start of Spark.
    """
    name = f"{metrics_prefix(source)}.{use_case}"
    stats_client().timing(f"{name}.seconds", timedelta(seconds=seconds))
    for table in _counted_tables(result):
        for field, operation in _OPERATIONS.items():
            if rows := table.get(field):
                stats_client().incr(f"{name}.rows", rows, tags={"table": table["table"], "operation": operation})
        if size := table.get("bytes"):
            stats_client().incr(f"{name}.staged_bytes", size, tags={"table": table["table"]})
        if took := table.get("seconds"):
            stats_client().timing(f"{name}.table_seconds", timedelta(seconds=took), tags={"table": table["table"]})
    if result.get("status") in _COUNTED and result.get("bytes"):
        stats_client().incr(f"{name}.bytes", result["bytes"])


def send_failure(dag: str, error: LoaderError) -> None:
    """Count a failed try of a task, as `binlog_loader.<DAG>.failures.<class of the error>`.

    OpenTelemetry has names in lower case.
    """
    stats_client().incr(f"binlog_loader.{dag}.failures.{type(error).__name__}")


def _counted_tables(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables whose rows this job staged or applied."""
    for table in result.get("tables", ()):
        if table.get("status", result.get("status")) in _COUNTED:
            yield table
