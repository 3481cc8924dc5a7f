"""Loads the captured tables of a source for the first time, or some of them again, into the warehouse.

**What it does.** `snapshot` reads the tables in chunks and stages them; `load` makes the tables of the warehouse from
that. Tables that are loaded already are left alone. From then on `continuous_delta` keeps them up to date: it begins at
the log position before the first read.

**How to run it.** Trigger it, by default for all captured tables, or with `tables` for a few: `["shop.orders"]`.

**When it fails.** Read the end of the failed task's log: it says what failed, why, and what to do. Then clear the
failed task: it goes on where it stopped. The DAG pauses itself after a failure, so unpause it as well.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from loader.airflow.defaults import SERIAL, source_param, tasks
from loader.airflow.operators import LoaderSparkOperator

with DAG(
    dag_id="initial_load",
    description="Load tables for the first time",
    doc_md=__doc__,
    schedule=None,
    default_args=tasks(hours=48),
    tags=["binlog-loader", "load"],
    params={
        "source": source_param(),
        "tables": Param(
            [],
            type="array",
            items={"type": "string", "pattern": r"^[^.]+\.[^.]+$"},
            title="Tables",
            description="Tables to load, as schema.table; none: all that are captured.",
        ),
    },
    **SERIAL,
) as dag:
    snapshot = LoaderSparkOperator(
        task_id="snapshot",
        use_case="snapshot",
        source="{{ params.source }}",
        arguments={"tables": dag.param("tables")},
    )
    load = LoaderSparkOperator(
        task_id="load",
        use_case="load",
        source="{{ params.source }}",
        arguments=snapshot.output,
    )
