"""The entry point `apache_airflow_provider`. Airflow calls it before it has started, so this imports nothing of it."""

from __future__ import annotations

from typing import Any

from loader import __version__

_FIELDS = {
    "tls": ("TLS", "required, or off. By default TLS is required for every host except this machine."),
    "tls_ca": (
        "TLS authority",
        "Path of the PEM file with the authority of the server's certificate, on every worker.",
    ),
    "tls_cert": (
        "TLS certificate",
        "Path of the PEM file with the user's certificate, if the server demands one.",
    ),
    "tls_key": ("TLS key", "Path of the PEM file with its key."),
    "server_public_key": ("Public key of the server", "Path of its public_key.pem, for passwords without TLS."),
}
"""Label and description of the keys of the extra, which have the names of the keys of a source.

From Airflow 3.2 on they are fields of the form.
"""
_PLACEHOLDERS = {"host": "db.example.org", "port": "3306", "login": "loader"}


def get_provider_info() -> dict[str, Any]:
    """Return the description of the provider: the connection type of a source, and the links of tasks."""
    return {
        "package-name": "binlog-loader",
        "name": "binlog-loader",
        "description": "Brings MySQL and MariaDB tables into Apache Iceberg from the binary log",
        "versions": [__version__],
        "connection-types": [
            {
                "connection-type": "binlog_source",
                "hook-class-name": "loader.airflow.hooks.SourceHook",
                "hook-name": "binlog-loader source",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema"],
                    "relabeling": {"login": "User"},
                    "placeholders": _PLACEHOLDERS,
                },
                "conn-fields": {name: _field(name, *texts) for name, texts in _FIELDS.items()},
            }
        ],
        "extra-links": [
            f"loader.airflow.reports.links.{name}"
            for name in ("StatusLink", "TableLink", "IntervalLink", "SparkLink", "ErrorLink")
        ],
    }


def _field(name: str, label: str, description: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "null"]}
    if name == "tls":
        schema["enum"] = ["required", "off"]
    return {"label": label, "description": description, "schema": schema}
