"""Compare tables with their changes from a log position on, up to their applied position, and correct rows that differ.

**What it does.** `replay` collapses every change after `lognum` and `logpos` to the last version of each row, and looks
for rows of the tables that differ. With `dry_run`, the default, the log and the result of the task say how many rows
differ in each table, with samples, and a branch of each such table has the corrected rows. Without it, the tables get
these rows. The applied position of a table does not change. A table that is right is left alone. Tables without a key,
and histories, are rolled back to their snapshot at that position, and then forward.

**When it fails.** The log of the task says which tables could not be replayed and why: staged files that were purged or
damaged (`loader staged restore`), tables without a key and without a snapshot at that position, or a position before
the first interval. The other tables are done. Fix the cause, then trigger the DAG again.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param

from loader.airflow.dags.arguments import dag_arguments, tables_param
from loader.airflow.operators import FIRST_POSITION, LoaderSparkOperator
from loader.airflow.reports.asset_events import tables_alias
from loader.dag_settings import DagSettings, pool_of

_TABLES = "Tables to replay, as schema.table or patterns, one per line; empty: all tables."


def replay_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.replay`."""
    arguments = dag_arguments("replay", source, settings, page=str(__doc__))
    with DAG(
        description=f"Compare tables of {source} with the log, and correct them",
        schedule=None,
        params=_params(),
        **arguments,
    ) as dag:
        LoaderSparkOperator(
            task_id="replay",
            use_case="replay",
            source=source,
            arguments={name: dag.param(name) for name in ("lognum", "logpos", "tables", "dry_run")},
            pool=pool_of(source, settings),
            outlets=[tables_alias(source)],
        )
    return dag


def _params() -> dict[str, Param]:
    return {
        "lognum": Param(type="integer", minimum=1, title="Log number", description="For example 54 for binlog.000054."),
        "logpos": Param(
            FIRST_POSITION,
            type=["null", "integer"],
            minimum=FIRST_POSITION,
            title="Position",
            description="Offset in that file; empty: the start of the file.",
        ),
        "tables": tables_param(_TABLES),
        "dry_run": Param(True, type="boolean", title="Dry run", description="Only report differences."),
    }
