"""Repair a source without a shell: what errors name as a command can be done with this form.

**What it does.** `choose_repair` checks the form, and chooses the task of its action. Every other task is skipped.

- `release`: let quarantined tables continue, from their applied positions. Fix the cause first.
- `pause`: stop merging tables until they are resumed. Their changes are still staged, and other tables continue.
- `resume`: merge paused tables again, from their applied positions.
- `load_again`: read tables from the server again (`read_tables_again`), and replace them (`load_tables`). If a table is
  refused or fails, the others are loaded, and `check_tables` names it.
- `restore`: extract the interval at a position again, to restore staged files that were lost or changed.
- `follow`: continue on another server, at a position, or by accepting transactions that only that server has. With
  GTIDs runs of `SOURCE.delta` follow a new server without this.
- `set_schema`: give the columns of a table from a position on, if neither the log nor its statements tell them.
- `stage_rows`: stage the rows that an interval lacks, after `set_schema` or `skip`. Then release the table.
- `begin`: begin to read the log at a place, before any table is loaded.
- `skip`: leave a transaction out, or the rows of tables in it. `approve_skip` finds it, shows its rows, and waits for a
  person under "Required Actions". `skip` records it with the reason and the name of the person. If the interval is
  staged without these rows, it also stages the other rows. Then release the tables.
- `withdraw_skip`: stage the rows of a skip after all, if neither a plan nor a staged interval has the skip.

Each does what the command does: `loader release`, `loader pause`, `loader resume`, `loader initial-load --again`,
`loader staged restore`, `loader follow`, `loader schema set`, `loader extract --interval`, `loader begin`, `loader
skip`, `loader skip --withdraw`. To compare tables with the log, and to correct them, use `SOURCE.replay`. To compare
them with the server, use `SOURCE.check`. To load new tables, use `SOURCE.initial_load`.

**When it fails.** The last lines of the failed task's log say what failed, where, why, and what to do. A form that is
wrong fails `choose_repair`, and nothing was done. Otherwise fix the cause, then clear the failed task. If
`check_tables` fails, load the tables that it names again.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from airflow.sdk import DAG

from loader.airflow.actions.pause_tasks import pause, resume
from loader.airflow.actions.repair_form import repair_params
from loader.airflow.actions.repair_tasks import begin, check_chosen, choose_repair, follow, release, set_schema
from loader.airflow.actions.skip_tasks import FIELDS, ApproveSkipOperator, SkipOperator, withdraw_skip
from loader.airflow.dags.arguments import dag_arguments, set_params
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.reports.asset_events import tables_alias
from loader.airflow.tasks import check_tables
from loader.dag_settings import DagSettings, pool_of


def repair_dag(source: str, settings: DagSettings) -> DAG:
    """Return the DAG `<source>.repair`."""
    pool = pool_of(source, settings)
    with DAG(
        description=f"Release, pause, reload or restore tables of {source}, follow a server, set a schema, skip rows",
        schedule=None,
        **dag_arguments("repair", source, settings, page=str(__doc__)),
    ) as dag:
        position = {"position": dag.param("position")}
        staging = [
            LoaderSparkOperator(
                task_id=action,
                use_case=action,
                source=source,
                arguments=position,
                pool=pool,
                pre_execute=partial(check_chosen, action),
            )
            for action in ("restore", "stage_rows")
        ]
        read = LoaderSparkOperator(
            task_id="read_tables_again",
            use_case="read_tables_again",
            source=source,
            arguments={"tables": dag.param("tables")},
            fail_on_tables=False,
            pool=pool,
            pre_execute=partial(check_chosen, "load_again"),
        )
        load: Any = LoaderSparkOperator(
            task_id="load_tables",
            use_case="load_tables",
            source=source,
            arguments=read.output,
            fail_on_tables=False,
            pool=pool,
            outlets=[tables_alias(source)],
        )
        form = {name: dag.param(name) for name in FIELDS}
        approve = ApproveSkipOperator(
            task_id="approve_skip",
            source=source,
            form=form,
            response_timeout=timedelta(hours=settings.timeout_hours.repair),
            pre_execute=partial(check_chosen, "skip"),
        )
        skip = SkipOperator(task_id="skip", source=source, form=form, answer=approve.output, pool=pool)
        calls: list[Any] = [release, pause, resume, follow, set_schema, begin, withdraw_skip]
        actions = [
            *staging,
            read,
            approve,
            *(
                call.override(pre_execute=partial(check_chosen, call.function.__name__))(source=source)
                for call in calls
            ),
        ]
        choose_repair() >> actions
        results: Any = [read.output, load.output]
        check_tables(source=source, results=results)
        approve >> skip
        set_params(dag, repair_params())
    return dag
