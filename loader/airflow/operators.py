"""The operator that runs a stage of the loader, with Spark only if the stage needs it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, cast

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from loader.airflow.lineage.task_work import TaskWork
from loader.airflow.reports.asset_events import add_table_events
from loader.airflow.reports.errors import TaskFailed, details_file, is_tried_again, reported
from loader.airflow.reports.links import ErrorLink, IntervalLink, LinkedOperator, SparkLink, StatusLink, TableLink
from loader.airflow.reports.notifications import notify
from loader.airflow.reports.work_metrics import send_work
from loader.airflow.run_conf import refuse_unknown_conf
from loader.airflow.stages.template_values import flag, table_names
from loader.airflow.versions import AirflowException, spark_arguments
from loader.errors import UsageError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors.base import OperatorLineage
    from airflow.sdk import Context, XComArg
    from pydantic import BaseModel

    from loader.pipeline import Job
    from loader.settings import SourceSettings
    from loader.spark.settings import SparkSettings

UseCase = Literal[
    "read_tables",
    "read_tables_again",
    "load_tables",
    "extract",
    "materialise",
    "replay",
    "maintain",
    "restore",
    "stage_rows",
    "verify",
    "initial_load",
]


_OF_INTERVALS = {"extract", "materialise"}


class LoaderSparkOperator(LinkedOperator, SparkSubmitOperator):
    """Runs one use case of the loader and returns its result. Work that needs no Spark starts no Spark.

    The Spark connection, which must exist, has the master. All other settings of Spark come from the configuration.
    Spark's output goes to a file that the task's log names. Log lines of the loader also go to the task's log.

    Args:
        use_case: which `loader.pipeline.<use_case>_job` to run.
        source: see `loader.airflow.sources.settings_of`. (templated)
        arguments: of that function, usually the XCom of the task before: `tables`, `manifests`, `only`,
            `start_seqno`, `through_seqno`, `stop_seqno`, `start`, `dry_run`, `approved_by`, `position`. Other keys are
            ignored. (templated)
        fail_on_tables: fail if a table failed. If False, a later task `loader.airflow.tasks.check_tables` fails for
            tables that no retry can help, so that the tasks before it continue with the other tables.
        now: also merge tables that are not due by their rules. For `materialise`. (templated)
        kwargs: of BaseOperator, and `conn_id` of the Spark connection.
    """

    template_fields: Sequence[str] = ("source", "arguments", "now")
    operator_extra_links = (StatusLink(), TableLink(), IntervalLink(), SparkLink(), ErrorLink())
    refuses_unknown_conf = True
    """Whether the run fails if its conf has a key that is no param: the form of the DAG is one of the loader."""
    interval_start = ""
    history_page = ""
    _output: logging.Logger | None = None
    _spec: BaseModel | None = None
    _work: TaskWork | None = None

    def __init__(
        self,
        *,
        use_case: UseCase,
        source: str,
        arguments: dict[str, Any] | XComArg,
        fail_on_tables: bool = True,
        now: Any = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**spark_arguments(), **kwargs)
        self.use_case = use_case
        self.source = source
        self.arguments: Any = arguments
        self.fail_on_tables = fail_on_tables
        self.now = now

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run the use case.

        Raises:
            TaskFailed: the use case or tables failed.
        """
        try:
            return self._execute(context)
        except TaskFailed as failed:
            self.link_error(failed.error)
            raise

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return the tables that the task committed to. The OpenLineage provider calls this, after failures as well."""
        from loader.airflow.lineage.table_lineage import lineage

        return lineage(self._work) if self._work else None

    def _execute(self, context: Context) -> dict[str, Any]:
        # Imported here and below, so that parsing a DAG file imports no driver and no pyspark.
        from loader.airflow.sources import settings_of

        with reported(context):
            if self.refuses_unknown_conf:
                refuse_unknown_conf(context)
            settings = settings_of(self.source)
            self.source_name = settings.name
            if self.arguments is None:
                raise UsageError(
                    "the previous task has no result, so this task has no input",
                    why="somebody marked that task as success, and it did not do its work",
                    hint="clear the marked task with the tasks after it, or trigger a new run",
                    source=settings.name,
                )
            return self._perform(context, settings)

    def _perform(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        """Run the use case, and fail for its tables."""
        from loader.airflow.reports.failures import errors_of, failure

        result = self._stage(context, settings)
        errors = errors_of(result)
        if not self.fail_on_tables:
            errors = {table: error for table, error in errors.items() if is_tried_again(error, context)}
        if failed := failure(errors, len(result.get("tables", []))):
            raise failed
        return result

    def _stage(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        """Run the use case, and report what it did: log, notifications, metrics, events of assets, lineage."""
        if self.use_case in _OF_INTERVALS:
            self.interval_start = str(self.arguments.get("start") or "")
        began = monotonic()
        try:
            result = self._result(context, settings)
        finally:
            if self.use_case == "materialise":
                self._notify(context, settings, self.arguments.get("start_seqno"))
        work = TaskWork(settings.name, settings.server, self._spec, self.arguments, result, self._tries(context))
        self._report(context, settings, work, self.use_case, monotonic() - began)
        return result

    def _report(
        self, context: Context, settings: SourceSettings, work: TaskWork, use_case: str, seconds: float
    ) -> None:
        """Report work: metrics, log, events of assets, and lineage."""
        from loader.airflow.reports.failures import summary

        send_work(settings.name, use_case, self._new_work(context, work.result), seconds)
        self._work = work
        for line in summary(work.result):
            self.log.info(line)
        add_table_events(context, settings.name, settings.catalog.name, work.arguments, work.result, work.tries)

    def _new_work(self, context: Context, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part of a result that no earlier try counted."""
        return result

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader import pipeline
        from loader.airflow.connections import secrets_of, spark_settings
        from loader.airflow.reports.progress_lines import fewer_progress_lines

        with secrets_of(settings):
            job = self._job(settings)
            self._spec = job.spec
            if result := self._without_spark(job):
                return result
            spark = spark_settings(settings.spark, self._conn_id)
            if spark.local and not job.kind.needs_spark:
                with fewer_progress_lines():
                    return pipeline.run_in_threads(job, spark.threads)
            if job.kind.reads_source and not spark.local:
                _refuse_secret(settings, spark)
            return self._submitted(context, job, spark)

    def _notify(self, context: Context, settings: SourceSettings, since: int | None) -> None:
        """Notify of what a merge did to whole tables, also if it fails later. The next run does it if this one dies.

        `since`: the seqno at which its first interval starts.
        """
        notify(context, settings.name, lambda notifier: notifier.quarantines(settings))
        if since is not None:
            notify(context, settings.name, lambda notifier: notifier.schema_changes(settings, since))

    def _tries(self, context: Context) -> int:
        """Return how often the work was tried; an earlier try may have committed to tables and not reported it."""
        return int(context["ti"].try_number)

    def _job(self, settings: SourceSettings) -> Job:
        from loader import pipeline

        match self.use_case:
            case "read_tables":
                return pipeline.read_tables_job(settings, self._tables())
            case "read_tables_again":
                return pipeline.read_tables_job(settings, self._tables(), again=True)
            case "load_tables":
                return pipeline.load_tables_job(settings, tuple(self.arguments["manifests"]))
            case "extract":
                return pipeline.extract_job(settings, self.arguments["start_seqno"], self.arguments["through_seqno"])
            case "materialise":
                return pipeline.materialise_job(settings, self.arguments["stop_seqno"], now=flag("now", self.now))
            case "replay":
                start = pipeline.find_replay_start(settings, self.arguments["start"])
                self.log.info("changes after %s", start.position)
                end = self.arguments.get("end", "")
                return pipeline.replay_job(
                    settings,
                    start.seqno,
                    self._tables(),
                    until_seqno=pipeline.find_replay_end(settings, end, start) if end else 0,
                    publish=not self.arguments["dry_run"],
                    approved_by=self.arguments.get("approved_by", ""),
                )
            case "maintain":
                return pipeline.maintain_job(settings, self._tables())
            case "verify":
                raise AssertionError("VerifyOperator opens a verification instead")
            case "initial_load":
                return pipeline.full_load_job(settings, self._tables(), again=self.arguments.get("again", False))
            case "restore":
                return pipeline.restore_job(settings, self._interval(settings))
            case "stage_rows":
                return pipeline.extract_job(settings, self._interval(settings))

    def _interval(self, settings: SourceSettings) -> int:
        """Return the start seqno of the interval that a form names."""
        from loader import pipeline

        return pipeline.find_interval(settings, str(self.arguments["position"]).strip())

    def _tables(self) -> tuple[str, ...]:
        """Return the named tables. A form sends null for an empty list."""
        return tuple(table_names(self.arguments.get("tables")))

    def _without_spark(self, job: Job) -> dict[str, Any] | None:
        """Return the result of a job that was done before, or that no table needs; None if Spark must run."""
        from loader.airflow.finished_work import done_before
        from loader.materialise.merge.carry_over import carry_over
        from loader.materialise.spec import MaterialiseSpec

        if result := done_before(job, named=bool(self.arguments.get("only"))):
            return result
        quiet = carry_over(job.spec) if isinstance(job.spec, MaterialiseSpec) else None
        return quiet.model_dump(mode="json") if quiet else None

    def _submitted(self, context: Context, job: Job, spark: SparkSettings) -> dict[str, Any]:
        """Run the job. Its result file decides, not the exit code of spark-submit.

        Raises:
            LoaderError: the error of the job.
            RetryableError: the job ended without a result (killed, out of memory).
        """
        from loader.airflow.connections import lent
        from loader.airflow.reports.spark_output import history_page, last_lines, output_log
        from loader.spark.job import rebuild
        from loader.spark.job_files import job_files, no_result
        from loader.spark.submit import environment

        output = details_file(context)
        with job_files(job.spec, spark) as files:
            self._prepare(job, files.arguments, files.settings)
            self.log.info("Spark runs %s; its output: %s", job.name, output)
            ended: AirflowException | None = None
            with output_log(output, self.log) as self._output, lent(environment(spark, short=job.kind.short)):
                try:
                    super().execute(context)
                except AirflowException as error:
                    ended = error
            self.history_page = history_page(output)
            result = files.result()
        if result is None:
            raise no_result(job.name, _ending(ended), last_lines(output), spark) from ended
        if failed := result.get("error"):
            raise rebuild(failed)
        if ended and not result.get("exit_code"):
            self.log.warning("the job is done, though spark-submit ended with an error: %s", _ending(ended))
        return result

    def on_kill(self) -> None:
        """End spark-submit, and a driver on another machine. The provider would need the program `yarn` for that."""
        hook: Any = self._hook
        if hook and hook._yarn_application_id:
            from loader.spark.submit import spark_home
            from loader.spark.yarn import kill_application

            kill_application(hook._yarn_application_id, spark_home(), os.environ)
            hook._yarn_application_id = None
        super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        """Return the provider's hook, which logs every line of spark-submit."""
        hook = super()._get_hook()
        if self._output:
            hook._log = cast("Any", self._output)
        return hook

    def _prepare(self, job: Job, arguments: list[str], spark: SparkSettings) -> None:
        """Set up the provider's operator to submit exactly what the loader's command submits."""
        from loader.spark.settings import DEPLOY_MODE
        from loader.spark.submit import command, configuration

        argv = command(job.file, arguments, spark, short=job.kind.short)
        options = dict(pairwise(argv))
        self._hook = None
        self._spark_binary = argv[0]
        self.name = options["--name"]
        self.jars = options.get("--jars")
        self._deploy_mode = spark.conf.get(DEPLOY_MODE)
        self.conf = configuration(spark, short=job.kind.short)
        self.application = str(job.file)
        self.application_args = arguments


def _ending(error: AirflowException | None) -> str:
    """Return how spark-submit ended: the first line of the provider's text, without the command."""
    if error is None:
        return "spark-submit reported no error"
    _, mark, rest = str(error).rpartition("Error code is: ")
    return (mark + rest).partition("\n")[0].rstrip(".")


def _refuse_secret(settings: SourceSettings, spark: SparkSettings) -> None:
    """Refuse a password that only the driver has, unless it can hand it over to executors on other machines.

    Their environment is no way: it is part of the arguments of spark-submit, which everybody on the machine can read.
    """
    from loader.airflow.sources import configured_sources
    from loader.spark.workers import missing_privacy

    missing = missing_privacy(spark.conf)
    if not settings.server.password.startswith("airflow:") or not missing:
        return
    server = configured_sources(settings.name)[settings.name].server
    # A source whose connection has the server must not have the key password as well.
    change = "replace server of the source by host, port, user and TLS of that connection, and set" if server else "set"
    raise UsageError(
        "a password from an Airflow connection is not available on other machines",
        why=f"[spark.conf] lacks {' and '.join(missing)}, without which the driver does not hand it over",
        hint=f"set {' and '.join(missing)} to true in [spark.conf], and the secret that the cluster manager uses;"
        f" or {change} password to file:/path, and put that file on every node of the Spark cluster",
        key="server" if server else "password",
    )
