"""The operator that runs a stage of the loader as a Spark application."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException

from loader.airflow.conf import refuse_unknown_conf
from loader.airflow.errors import reported
from loader.errors import RetryableError, UsageError

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

    from loader.pipeline import Job
    from loader.settings import SourceSettings
    from loader.submit import SparkSettings

UseCase = Literal["snapshot", "load", "extract", "materialise", "replay", "maintain"]


class LoaderSparkOperator(SparkSubmitOperator):
    """Runs one use case of the loader and returns its result; what is done already starts no Spark.

    The master is that of the Spark connection, which must exist; everything else of Spark is the configuration's.

    Args:
        use_case: which `loader.pipeline.<use_case>_job` to run.
        source: see `loader.airflow.sources.settings_of`. (templated)
        arguments: what that function needs, under the names of the result of the task before, whose XCom it usually
            is: `tables`, `manifests`, `start_seqno`, `through_seqno`, `stop_seqno`, `lognum`, `logpos`, `dry_run`;
            other keys are ignored. (templated)
        kwargs: of BaseOperator, and `conn_id` of the Spark connection.
    """

    template_fields: Sequence[str] = ("source", "arguments")

    def __init__(
        self,
        *,
        use_case: UseCase,
        source: str,
        arguments: dict[str, Any] | XComArg,
        pool: str = "spark",
        **kwargs: Any,
    ) -> None:
        # Not durable: that reattaches to a driver on a cluster, and ours is always here.
        super().__init__(pool=pool, durable=False, **kwargs)
        self.use_case = use_case
        self.source = source
        self.arguments: Any = arguments

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Run the use case.

        Raises:
            AirflowException: it failed, and a retry can help.
            AirflowFailException: it failed, also where only some tables did, and a retry cannot help.
        """
        # The loader's parts are imported here and below, so that reading a DAG file imports no driver and no pyspark.
        from loader.airflow.report import failure, summary
        from loader.airflow.sources import settings_of

        with reported(context):
            refuse_unknown_conf(context)
            result = self._result(context, settings_of(self.source))
            for line in summary(result):
                self.log.info(line)
            if failed := failure(result):
                raise failed
        return result

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader.airflow.already import done_before
        from loader.airflow.connections import secret, spark_settings

        with ExitStack() as secrets:
            for reference in {settings.server.password, *settings.catalog.secrets.values()}:
                secrets.enter_context(secret(reference))
            job = self._job(settings)
            if result := done_before(job):
                return result
            spark = spark_settings(settings.spark, self._conn_id)
            if self.use_case in {"snapshot", "extract"} and not spark.local:
                _refuse_secret(settings.server.password)
            return self._submitted(context, job, spark)

    def _job(self, settings: SourceSettings) -> Job:
        from loader import pipeline

        match self.use_case:
            case "snapshot":
                return pipeline.snapshot_job(settings, tuple(self.arguments["tables"]))
            case "load":
                return pipeline.load_job(settings, tuple(self.arguments["manifests"]))
            case "extract":
                return pipeline.extract_job(settings, self.arguments["start_seqno"], self.arguments["through_seqno"])
            case "materialise":
                return pipeline.materialise_job(settings, self.arguments["stop_seqno"])
            case "replay":
                since = pipeline.log_position(settings, self.arguments["lognum"], self.arguments["logpos"])
                publish = not self.arguments["dry_run"]
                return pipeline.replay_job(settings, since, tuple(self.arguments["tables"]), publish=publish)
            case "maintain":
                return pipeline.maintain_job(settings)

    def _submitted(self, context: Context, job: Job, spark: SparkSettings) -> dict[str, Any]:
        """Run the job to its end; what it says of itself counts for more than how spark-submit ended.

        Raises:
            LoaderError: what the job raised.
            RetryableError: it ended without a result (killed, out of memory, no Java).
        """
        from loader.job import rebuild

        with TemporaryDirectory(prefix="loader-task-") as folder:
            spec_file, result_file = Path(folder, "spec.json"), Path(folder, "result.json")
            spec_file.write_text(job.spec.model_dump_json(), encoding="utf-8")
            self._prepare(job, ["--spec", str(spec_file), "--result", str(result_file)], spark)
            ended: AirflowException | None = None
            try:
                super().execute(context)
            except AirflowException as error:
                ended = error
            if not result_file.exists():
                raise RetryableError(
                    "the Spark job ended without a result",
                    why=_ending(ended) if ended else "spark-submit reported no error",
                    hint="read the job's lines above; if it was short of memory, give it more spark.driver.memory",
                    job=job.name,
                ) from ended
            result: dict[str, Any] = json.loads(result_file.read_bytes())
        if failed := result.get("error"):
            raise rebuild(failed)
        if ended and not result.get("exit_code"):
            self.log.warning("the job is done, though spark-submit ended with an error: %s", ended)
        return result

    def _prepare(self, job: Job, arguments: list[str], spark: SparkSettings) -> None:
        """Make the provider's operator submit exactly what the loader's own command would."""
        from loader.submit import command, configuration, environment

        argv = command(job.file, arguments, spark, short=job.short)
        options = dict(pairwise(argv))
        self._spark_binary = argv[0]
        self.name = options["--name"]
        self.jars = options.get("--jars")
        self.conf = configuration(spark, short=job.short)
        self.env_vars = environment(spark)
        self.application = str(job.file)
        self.application_args = arguments


def _ending(error: AirflowException) -> str:
    """How spark-submit ended, by the provider's text, without the command, which the log has already."""
    _, mark, rest = str(error).rpartition("Error code is: ")
    return mark + rest


def _refuse_secret(password: str) -> None:
    # Executors elsewhere connect to the server themselves. Their environment is part of spark-submit's arguments,
    # which everybody on the machine can read.
    if password.startswith("airflow:"):
        raise UsageError(
            "a password from an Airflow connection reaches no other machine",
            hint="give the source's password as file:/path, with that file on every node of the Spark cluster",
            key="password",
        )
