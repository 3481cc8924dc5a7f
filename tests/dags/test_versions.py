"""Differences between versions of Airflow that people would see in the logs of all tasks."""

from __future__ import annotations

import warnings

from loader.airflow.operators import LoaderSparkOperator


def test_a_spark_task_is_not_durable_and_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        task = LoaderSparkOperator(task_id="extract", use_case="extract", source="shop", arguments={})
    assert task.durable is False
