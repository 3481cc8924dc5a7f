"""One task that loads tables of a source for the first time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from loader.airflow.operators import LoaderSparkOperator
from loader.airflow.single_task.defaults import with_defaults
from loader.airflow.stages.template_values import flag, table_names

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.full_load.spec import FullLoadSpec
    from loader.pipeline import Job
    from loader.settings import SourceSettings


class InitialLoadOperator(LoaderSparkOperator):
    """Loads captured tables of a source into the warehouse, as `loader initial-load` does.

    Tables that are loaded are left alone, so the task can stand before a delta in every run. If all of them are loaded,
    it starts no Spark. The result has the results of the tables (`tables`).

    A retry continues where the try before stopped. With `again`, a retry begins again. Killing the task kills its Spark
    application.

    Args:
        source: name of the source in the configuration.
        tables: names as schema.table; empty for all captured tables. (templated)
        again: also read tables again that are loaded. (templated)
        fail_on_tables: fail if tables failed, after all other tables are loaded. If False, fail only as long as a retry
            can help.
        kwargs: of BaseOperator, and `conn_id` of the Spark connection. By default pool, retries, time limit and so on
            are those of the source's DAGs.

    Raises:
        UsageError: the configuration is wrong, or has no such source.
    """

    template_fields: Sequence[str] = ("tables", "again")
    refuses_unknown_conf = False

    def __init__(self, *, source: str, tables: Any = (), again: Any = False, **kwargs: Any) -> None:
        super().__init__(
            use_case="initial_load", source=source, arguments={}, **with_defaults(source, "initial_load", kwargs)
        )
        self.tables = tables
        self.again = again

    def _result(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        from loader.full_load.table_results import load_results

        self.arguments = {"tables": table_names(self.tables), "again": flag("again", self.again)}
        result = super()._result(context, settings)
        load, read = cast("FullLoadSpec", self._spec).load, result["read"]
        # For lineage and for events of assets: what was read is what the load applied.
        self._spec = load.model_copy(update={"manifests": tuple(read["manifests"])})
        self.arguments = read
        return load_results(result)

    def _without_spark(self, job: Job) -> dict[str, Any] | None:
        from loader.airflow.finished_work import loaded_before

        found = loaded_before(cast("FullLoadSpec", job.spec))
        return found.model_dump(mode="json") if found else None
