"""Links that Airflow shows with a task. The worker makes them after the task, and Airflow keeps each as an XCom."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink

from loader.airflow.versions import config_value
from loader.error_page import ErrorLinks
from loader.errors import LoaderError
from loader.page.addresses import interval_address, source_address, table_address


class LinkedOperator:
    """What the links of a task need to know. Operators inherit it.

    Attributes:
        source_name: the task's source; empty if the task failed before it knew the source.
        error_link: address of the error that the task failed with, on the documentation site.
        failed_table: the only table that the error concerns, as `schema.table`.
    """

    source_name = ""
    error_link = ""
    failed_table = ""

    def link_error(self, error: LoaderError) -> None:
        """Let the links lead to the error that the task fails with."""
        from loader.airflow.sources import docs_url

        self.error_link = ErrorLinks(docs_url()).of(error)
        tables = str(error.where.get("table") or error.where.get("tables") or "")
        self.failed_table = "" if ", " in tables else tables


class ErrorLink(BaseOperatorLink):
    """The entry of a failed task's error on the documentation site (`docs_url`). Empty without an error or a site."""

    name = "Error page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link."""
        return str(operator.error_link)


class StatusLink(BaseOperatorLink):
    """The status page of the task's source, inside Airflow: positions, intervals, tables, and their errors."""

    name = "Status of the source"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link, below the address of Airflow as the worker knows it (`[api] base_url`)."""
        return status_page(operator.source_name)


class TableLink(BaseOperatorLink):
    """The status page of the table that the error of a failed task concerns. Empty for no table, and for several."""

    name = "Page of the table"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link, as StatusLink does."""
        source, table = operator.source_name, operator.failed_table
        return status_page(source, table) if source and table else ""


class IntervalLink(BaseOperatorLink):
    """The first interval of the task on the status page of its source: state, rows, bytes, and key of its manifest.

    Empty for tasks without an interval.
    """

    name = "Interval and manifest"

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
