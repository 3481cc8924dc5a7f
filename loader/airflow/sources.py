"""The source of a task."""

from __future__ import annotations

from loader.config.file import load_config
from loader.config.source import Source
from loader.dag_settings import DagSettings
from loader.errors import LoaderError, UsageError
from loader.settings import SourceSettings


def settings_of(source: str) -> SourceSettings:
    """Return the settings of a source of the configuration at $LOADER_CONFIG; without a name, of the only source.

    The server may come from an Airflow connection, which is read now.

    Raises:
        UsageError: the configuration, the source or the connection does not exist.
    """
    from loader.airflow.connections import server_of

    return load_config().source(source, server_of)


def dag_settings_of(source: str) -> DagSettings:
    """Return how Airflow runs the tasks of a source of the configuration at $LOADER_CONFIG. Nothing is connected to.

    Raises:
        UsageError: the configuration or the source does not exist.
    """
    return configured_sources(source)[source].airflow


def configured_sources(*names: str) -> dict[str, Source]:
    """Return sources of the configuration at $LOADER_CONFIG by name; without names, all sources.

    Raises:
        UsageError: the configuration or a source does not exist.
    """
    sources = load_config().sources
    if unknown := sorted(set(names) - set(sources)):
        raise UsageError(f"there is no source {unknown[0]!r}", hint=f"name one of {', '.join(sources)}", key="sources")
    return {name: sources[name] for name in names or sources}


def docs_url() -> str:
    """Return the address of the documentation; empty if none is set, or the configuration cannot be read.

    The error that a task ends with may be that of its configuration.
    """
    try:
        return load_config().docs_url
    except LoaderError:
        return ""
