"""The operator that compares all rows of tables with the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.versions import AirflowSkipException
from loader.errors import DataError, LoaderError
from loader.model.table import TableName

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.pipeline import Verified
    from loader.settings import SourceSettings


class VerifyOperator(LoaderSparkOperator):
    """Compares all rows of tables with the server at one position of the log; see `loader verify`.

    First it runs a delta up to that position. Others may write to the server meanwhile.

    Args:
        source: see LoaderSparkOperator. (templated)
        arguments: `tables`, names as schema.table, empty for all; `verify`: false to skip the task. (templated)
        kwargs: see LoaderSparkOperator.
    """

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

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader import pipeline
        from loader.airflow.connections import secrets_of, spark_settings

        with secrets_of(settings), pipeline.verification(settings, self._tables()) as opened:
            spark = spark_settings(settings.spark, self._conn_id)
            applied = self._submitted(context, opened.delta, spark) if opened.delta else None
            verified = opened.finish(self._submitted(context, opened.comparison(applied), spark))
        self.log.info("compared at %s", verified.position)
        if different := _difference(verified):
            raise different
        return verified.model_dump(mode="json")


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
