"""The connection type of a source's password."""

from __future__ import annotations

from airflow.sdk import BaseHook


class SourceHook(BaseHook):
    """A connection that holds what the configuration calls `airflow:<connection>`: the password of a source's user.

    Server, port and user stand in the configuration, so that jobs are the same without Airflow.
    """

    conn_name_attr = "source_conn_id"
    default_conn_name = "mysql_source_default"
    conn_type = "mysql_source"
    hook_name = "binlog-loader source"

    def __init__(self, source_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.source_conn_id = source_conn_id

    def get_conn(self) -> str:
        """The password."""
        return self.get_connection(self.source_conn_id).password or ""
