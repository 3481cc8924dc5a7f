"""Links that Airflow shows with a task."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink

from loader.airflow.versions import config_value
from loader.page.addresses import interval_address, source_address, table_address


class ErrorLink(BaseOperatorLink):
    """The entry of a failed task's error on the documentation site (`docs_url`). Empty without an error or a site."""

    name = "Error page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link. The worker calls this after the task, and Airflow keeps the result as an XCom."""
        return str(operator.error_link)


class StatusLink(BaseOperatorLink):
    """The status page of the task's source, inside Airflow: positions, intervals, tables, and their errors."""

    name = "Status of the source"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link, below the address of Airflow as the worker knows it (`[api] base_url`)."""
        return status_page(operator.source_name)


class IntervalLink(BaseOperatorLink):
    """The first interval of the task on the status page of its source: state, rows, bytes and tables that are behind.

    Empty for tasks without an interval.
    """

    name = "Interval"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link, as StatusLink does."""
        start = operator.interval_start
        return f"{_pages()}{interval_address(operator.source_name, start)}" if start else ""


class SparkLink(BaseOperatorLink):
    """The Spark application of the task on Spark's history server. Empty without an application or a server."""

    name = "Spark history"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link. It is known after the task, when the page of the running driver is gone."""
        return str(operator.history_page)


def status_page(source: str = "", table: str = "") -> str:
    """Return the address of a status page inside Airflow: of a table, of a source, or of all sources."""
    page = table_address(source, table) if table else source_address(source) if source else ""
    return f"{_pages()}{page}"


def _pages() -> str:
    return f"{config_value('api', 'base_url').rstrip('/')}/binlog-loader/"
