"""The operator that compares all rows of tables with the server."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from loader.airflow.lineage.task_work import TaskWork
from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.versions import AirflowSkipException
from loader.errors import DataError, LoaderError
from loader.model.table import TableName

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.delta.spec import DeltaSpec
    from loader.pipeline import Job, Verified
    from loader.settings import SourceSettings
    from loader.spark.settings import SparkSettings


class VerifyOperator(LoaderSparkOperator):
    """Compares all rows of tables with the server at one position of the log; see `loader verify`.

    First it runs a delta up to that position, with the metrics, notifications, events of assets and lineage of the DAG
    `SOURCE.delta`. Airflow drops the events if the rows differ. Others may write to the server meanwhile.

    Args:
        source: see LoaderSparkOperator. (templated)
        arguments: `tables`, names as schema.table, empty for all; `verify`: false to skip the task. (templated)
        kwargs: see LoaderSparkOperator.
    """

    _applied: TaskWork | None = None

    def __init__(self, *, source: str, arguments: Any, **kwargs: Any) -> None:
        super().__init__(use_case="verify", source=source, arguments=arguments, **kwargs)

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Compare the rows.

        Raises:
            AirflowSkipException: the arguments do not ask for it.
            TaskFailed: rows differ, or tables could not be compared.
        """
        if not self.arguments.get("verify", True):
            raise AirflowSkipException("the form does not ask to compare rows")
        return super().execute(context)

    def _stage(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        """Compare the rows. Lineage is about what was applied before."""
        result = super()._stage(context, settings)
        self._work = self._applied or self._work
        return result

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader import pipeline
        from loader.airflow.connections import secrets_of, spark_settings

        with secrets_of(settings), pipeline.verification(settings, self._tables()) as opened:
            spark = spark_settings(settings.spark, self._conn_id)
            applied = self._apply(context, settings, opened.delta, spark) if opened.delta else None
            verified = opened.finish(self._submitted(context, opened.comparison(applied), spark))
        self.log.info("compared at %s", verified.position)
        if different := _difference(verified):
            raise different
        return verified.model_dump(mode="json")

    def _apply(self, context: Context, settings: SourceSettings, delta: Job, spark: SparkSettings) -> dict[str, Any]:
        """Run a delta, and report it as the tasks of the DAG `SOURCE.delta` report theirs."""
        from loader.extract.spec import ExtractResult, backlog_result

        began, spec = monotonic(), cast("DeltaSpec", delta.spec)
        try:
            applied = self._submitted(context, delta, spark)
        finally:
            self._notify(context, settings, spec.extract.start_seqno)
        extracts = [ExtractResult.model_validate(one) for one in applied["extracts"]]
        staged = backlog_result(extracts, applied["failed"]).model_dump(mode="json") if extracts else {}
        work = TaskWork(
            settings.name, settings.server, spec.materialise, staged, applied["materialise"], self._tries(context)
        )
        self._report(context, settings, work, "materialise", monotonic() - began)
        self._applied = work
        return applied


def _difference(verified: Verified) -> LoaderError | None:
    """Return the error of the tables whose rows differ; None if there are none."""
    different = [table for table in verified.tables if table.status == "different"]
    if not different:
        return None
    return DataError(
        f"rows of {len(different)} of {len(verified.tables)} tables differ from the server",
        why="\n".join(
            "\n  ".join((f"{one.table}: {'at least ' if one.at_least else ''}{one.differences:,} rows", *one.samples))
            for one in different
        ),
        hint="loader replay --from begin finds what the log can explain; otherwise: loader initial-load --again "
        + " ".join(f"--table {TableName.parse(one.table).argument}" for one in different),
        tables=", ".join(one.table for one in different),
        position=verified.position,
    )
