"""Links that Airflow shows with a task."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink


class ErrorLink(BaseOperatorLink):
    """The entry of a failed task's error on the documentation site (`docs_url`). Empty without an error or a site."""

    name = "Error page"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link. The worker calls this after the task, and Airflow keeps the result as an XCom."""
        return str(operator.error_link)
