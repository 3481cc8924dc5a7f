"""The connection type of a source's password."""

from __future__ import annotations

from airflow.sdk import BaseHook


class SourceHook(BaseHook):
    """A connection with the password of a source's user. The configuration refers to it as `airflow:<connection>`.

    The configuration has server, port and user, so that jobs work in the same way without Airflow.
    """

    conn_name_attr = "source_conn_id"
    default_conn_name = "mysql_source_default"
    conn_type = "mysql_source"
    hook_name = "binlog-loader source"

    def __init__(self, source_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.source_conn_id = source_conn_id

    def get_conn(self) -> str:
        """Return the password."""
        return self.get_connection(self.source_conn_id).password or ""
