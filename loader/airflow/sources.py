"""The source of a task."""

from __future__ import annotations

from loader.config import load_config
from loader.dag_settings import DagSettings
from loader.errors import LoaderError
from loader.settings import SourceSettings


def settings_of(source: str) -> SourceSettings:
    """Return the settings of a source of the configuration at $LOADER_CONFIG; without a name, of the only source.

    Raises:
        UsageError: the configuration or the source does not exist.
    """
    return load_config().source(source)


def dag_settings(source: str) -> DagSettings:
    """Return the settings of the DAGs of a source of the configuration; see `settings_of`.

    Raises:
        UsageError: the configuration or the source does not exist.
    """
    return load_config().sources[source].airflow


def docs_url() -> str:
    """Return the address of the documentation; empty if none is set, or the configuration cannot be read.

    The error that a task ends with may be that of its configuration.
    """
    try:
        return load_config().docs_url
    except LoaderError:
        return ""
