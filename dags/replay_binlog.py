"""Compares tables with their changes from a place in the log to where they stand, and brings rows in order that differ.

**What it does.** `replay` collapses every change after `lognum` and `logpos` to the last one of each key, and looks for
rows of the tables that are not what that comes to. With `dry_run`, which is the default, the task's log and its result
say how many rows differ in each table, with samples, and a branch of each such table holds it as it should be; without
it, the tables get these rows. Where a table stands does not change. A table that is right is left alone. Tables without
a key, and histories, are rolled back to their snapshot at that very position, and forward.

**When it fails.** The log of the task says which tables could not be replayed and why: staged files that were purged
or damaged (`loader staged restore`), tables without a key and without a snapshot at that position, a position before
the first interval. The other tables are done. Trigger the DAG again once the cause is gone.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from loader.airflow.defaults import SOURCE, serial, source_param, tables_param, tasks
from loader.airflow.operators import FIRST_POSITION, LoaderSparkOperator

with DAG(
    dag_id="replay_binlog",
    description="Compare tables with a part of the log, and correct them",
    doc_md=__doc__,
    schedule=None,
    default_args=tasks(hours=48),
    tags=["binlog-loader", "replay"],
    params={
        "source": source_param(scheduled=False),
        "lognum": Param(type="integer", minimum=1, title="Log number", description="54 of binlog.000054."),
        "logpos": Param(
            FIRST_POSITION,
            type=["null", "integer"],
            minimum=FIRST_POSITION,
            title="Position",
            description="Offset in that file; empty: its beginning.",
        ),
        "tables": tables_param("Tables to replay, as schema.table, or patterns of them, one on a line; none: all."),
        "dry_run": Param(True, type="boolean", title="Dry run", description="Only say what differs."),
    },
    **serial(),
) as dag:
    LoaderSparkOperator(
        task_id="replay",
        use_case="replay",
        source=SOURCE,
        arguments={name: dag.param(name) for name in ("lognum", "logpos", "tables", "dry_run")},
    )
