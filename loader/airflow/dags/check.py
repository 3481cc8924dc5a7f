"""Check server, log, grants, tables, store, warehouse and machine of a source. On request compare all rows.

**What it does.** `check_source` makes the checks of `loader doctor` and logs each finding. It runs where the tasks of
the other DAGs run, so it also checks what these can reach. It starts a small Spark application and changes nothing. If
`verify` is set, `verify` then runs a delta up to one position of the log, and compares all rows of the tables with the
server at that position. Others may write to the server meanwhile. Other DAGs are triggered by this delta as by those of
`SOURCE.delta`, but not if rows differ.

**How to run it.** Trigger it, or set `airflow.schedule.check` of the source. Scheduled runs do not compare rows.

**When it fails.** A check found an error, which stops runs or loses changes. The end of the log names each error with
its fix. Warnings are in the log and do not fail the task. If `verify` fails, its log has samples of the rows that
differ: compare with the log by `SOURCE.replay`, or load the tables again by `SOURCE.repair`.
"""

from __future__ import annotations

from airflow.sdk import DAG

from loader.airflow.actions.verify_operator import VerifyOperator
from loader.airflow.dags.arguments import dag_arguments, parse_schedule, set_params
from loader.airflow.form_params import flag_param, tables_param
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.tasks import check_source
from loader.dag_settings import DagSettings, pool_of

_TABLES = "Tables to compare, as schema.table, one per line; empty: all captured tables."


def check_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.check`."""
    with DAG(
        description=f"Check everything that the loader of {source} needs",
        schedule=parse_schedule(settings.schedule.check),
        **dag_arguments("check", source, settings, page=str(__doc__)),
    ) as dag:
        pool = pool_of(source, settings)
        verify = VerifyOperator(
            task_id="verify",
            source=source,
            arguments={name: dag.param(name) for name in ("verify", "tables")},
            pool=pool,
            outlets=[tables_alias(source)],
        )
        check_source.override(pool=pool)(source=source) >> verify
        rows = flag_param("Compare rows", "Also compare all rows with the server.")
        set_params(dag, {"verify": rows, "tables": tables_param(_TABLES)})
    return dag
