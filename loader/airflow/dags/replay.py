"""Compare tables with their changes from a log position on, up to their applied position, and correct rows that differ.

**What it does.** `compare` collapses every change after the start to the last version of each row, and looks for rows
of the tables that differ. The log and the result of the task say how many rows differ in each table, with samples, and
a branch of each such table has the corrected rows. `publish` gives the tables these rows. The applied position of a
table does not change. A table that is right is left alone. Tables without a key, and histories, are rolled back to
their snapshot at that position, and then forward.

**The form.** The start is `from`, or `lognum` and `logpos`. A time or a GTID set means the start of the interval with
the first change after it. With `to`, only rows that changed up to that position are compared, each with its newest
change. `dry_run`, the default, only compares. `approval` compares, then `approve` shows the differences and waits for a
person, under "Required Actions". Then `publish` corrects the tables that it showed. A rejection, or no answer in time,
changes nothing. The snapshots of approved corrections have the name of the person. With neither, `publish` corrects the
tables at once. `restore_files` first restores staged files that were lost or changed.

**When it fails.** The log of the task says which tables could not be replayed and why: staged files that were purged or
damaged, tables without a key and without a snapshot at that position, or log that was not read. The other tables are
done. Fix the cause, then trigger the DAG again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, TriggerRule, chain

from loader.airflow.actions.replay_form import form_arguments, replay_params
from loader.airflow.actions.replay_steps import ApproveReplayOperator, ReplayFormOperator, RestoreFilesOperator
from loader.airflow.dags.arguments import dag_arguments, set_params
from loader.airflow.form_params import tables_param
from loader.airflow.reports.asset_events import tables_alias
from loader.dag_settings import DagSettings, pool_of

_TABLES = "Tables to replay, as schema.table or patterns, one per line; empty: all tables."


def replay_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.replay`."""
    with DAG(
        description=f"Compare tables of {source} with the log, and correct them",
        schedule=None,
        **dag_arguments("replay", source, settings, page=str(__doc__)),
    ) as dag:
        common: dict[str, Any] = {"source": source, "form": form_arguments(dag), "pool": pool_of(source, settings)}
        # Every task runs unless one before it failed, and skips itself.
        later: dict[str, Any] = {"trigger_rule": TriggerRule.NONE_FAILED}
        restore = RestoreFilesOperator(task_id="restore_files", **common)
        compare = ReplayFormOperator(task_id="compare", publish=False, **common, **later)
        approve = ApproveReplayOperator(
            task_id="approve",
            form=common["form"],
            compared=compare.output,
            response_timeout=timedelta(hours=settings.timeout_hours.replay),
            **later,
        )
        publish = ReplayFormOperator(
            task_id="publish",
            publish=True,
            compared=compare.output,
            answer=approve.output,
            outlets=[tables_alias(source)],
            **common,
            **later,
        )
        chain(restore, compare, approve, publish)
        set_params(dag, replay_params(tables_param(_TABLES)))
    return dag
