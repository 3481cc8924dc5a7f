"""The exception by which a task of Airflow waits for a person."""

from __future__ import annotations

from loader.airflow.versions import HAS_AWAITING_INPUT

if HAS_AWAITING_INPUT:
    from airflow.sdk.exceptions import TaskAwaitingInput as TaskWaits
else:
    from loader.airflow.versions import TaskDeferred as TaskWaits

__all__ = ["TaskWaits"]
