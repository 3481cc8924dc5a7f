"""The entry point `apache_airflow_provider`."""

from __future__ import annotations

from typing import Any

from loader import __version__


def get_provider_info() -> dict[str, Any]:
    """Return the description of the provider: the connection type of a source, and the links of tasks.

    The connection type has a password field only.
    """
    return {
        "package-name": "binlog-loader",
        "name": "binlog-loader",
        "description": "Brings MySQL and MariaDB tables into Apache Iceberg from the binary log",
        "versions": [__version__],
        "connection-types": [
            {
                "connection-type": "mysql_source",
                "hook-class-name": "loader.airflow.hooks.SourceHook",
                "hook-name": "binlog-loader source",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "schema", "login", "port", "extra"],
                    "relabeling": {"password": "Password of the source's user"},
                },
            }
        ],
        "extra-links": [
            f"loader.airflow.reports.links.{name}" for name in ("StatusLink", "IntervalLink", "SparkLink", "ErrorLink")
        ],
    }
