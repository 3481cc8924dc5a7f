"""Airflow tasks and operators of the loader. No other package imports airflow.

DAG files import only light modules from here. Spark, drivers and the codec are imported when a task runs. The names in
`__all__` are for DAG files of users. Each is imported when it is used, because a process may still have to choose the
home of Airflow when it imports this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loader.airflow.sensors import TableAtLeastSensor
    from loader.airflow.single_task.delta import BinlogDeltaOperator
    from loader.airflow.single_task.initial_load import InitialLoadOperator
    from loader.airflow.single_task.replay import ReplayOperator

_MODULES = {
    "BinlogDeltaOperator": "single_task.delta",
    "InitialLoadOperator": "single_task.initial_load",
    "ReplayOperator": "single_task.replay",
    "TableAtLeastSensor": "sensors",
}

__all__ = ["BinlogDeltaOperator", "InitialLoadOperator", "ReplayOperator", "TableAtLeastSensor"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
