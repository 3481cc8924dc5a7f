"""One task that compares tables of a source with the log, or corrects them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loader.airflow.single_task.defaults import with_defaults
from loader.airflow.stages.staged_files import StagedFilesOperator
from loader.airflow.stages.template_values import flag, table_names

if TYPE_CHECKING:
    from airflow.sdk import Context

    from loader.settings import SourceSettings


class ReplayOperator(StagedFilesOperator):
    """Compares tables with their changes in the log from a place on, or corrects them, as `loader replay` does.

    The result has a result for each table (`tables`). Its `status` is `same`, `differs` or, after a correction,
    `published`. A difference does not fail the task. A correction can be repeated: a table that is right is left alone.
    Killing the task kills its Spark application.

    Args:
        source: name of the source in the configuration.
        start: where to start: `binlog.000054:123`, `54:123`, `begin`, a time such as `2026-01-31T12:00:00Z`, or a GTID
            set. (templated)
        end: compare only rows that changed up to this position, each with its newest change; empty for all rows that
            changed since. (templated)
        tables: names as schema.table, or patterns; empty for all tables. (templated)
        publish: correct the tables. Otherwise only compare them. (templated)
        restore_files: first restore staged files that were lost or changed. (templated)
        approved_by: name of the person who approved the correction, for the snapshots of the tables. (templated)
        fail_on_tables: fail if tables could not be replayed, after all other tables are done. If False, fail only as
            long as a retry can help.
        kwargs: of BaseOperator, and `conn_id` of the Spark connection. By default pool, retries, time limit and so on
            are those of the source's DAGs.

    Raises:
        UsageError: the configuration is wrong, or has no such source.
    """

    template_fields: Sequence[str] = ("start", "end", "tables", "publish", "restore_files", "approved_by")
    refuses_unknown_conf = False

    def __init__(
        self,
        *,
        source: str,
        start: str,
        end: str = "",
        tables: Any = (),
        publish: Any = False,
        restore_files: Any = False,
        approved_by: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(use_case="replay", source=source, arguments={}, **with_defaults(source, "replay", kwargs))
        self.start = start
        self.end = end
        self.tables = tables
        self.publish = publish
        self.restore_files = restore_files
        self.approved_by = approved_by

    def _perform(self, context: Context, settings: SourceSettings) -> dict[str, Any]:
        arguments = {
            "start": self.start,
            "end": self.end,
            "tables": table_names(self.tables),
            "dry_run": not flag("publish", self.publish),
            "approved_by": self.approved_by,
        }
        if flag("restore_files", self.restore_files):
            self._restore(context, settings, self.start)
        self.use_case, self.arguments = "replay", arguments
        return super()._perform(context, settings)
