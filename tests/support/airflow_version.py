"""The installed version of Airflow, without an import of it: that would set its home."""

from __future__ import annotations

from importlib.metadata import version

AIRFLOW = tuple(int(part) for part in version("apache-airflow-core").split(".")[:2])
WAITING = "awaiting_input" if AIRFLOW >= (3, 3) else "deferred"
"""The state of a task that waits for a person."""
