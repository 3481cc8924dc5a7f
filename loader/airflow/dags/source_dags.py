"""The DAGs of the sources of the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow.sdk import DAG, get_parsing_context

from loader.airflow.dags.check import check_dag
from loader.airflow.dags.delta import delta_dag
from loader.airflow.dags.initial_load import initial_load_dag
from loader.airflow.dags.maintain import maintain_dag
from loader.airflow.dags.repair import repair_dag
from loader.airflow.dags.replay import replay_dag
from loader.airflow.sources import configured_sources
from loader.config.source import Source
from loader.dag_settings import dag_key
from loader.errors import LoaderError, UsageError

_FACTORIES = {
    "delta": delta_dag,
    "initial_load": initial_load_dag,
    "replay": replay_dag,
    "repair": repair_dag,
    "maintain": maintain_dag,
    "check": check_dag,
}


def source_dags(*names: str) -> dict[str, DAG]:
    """Return the DAGs of sources by DAG id. The configuration is read and nothing is connected to.

    Every task parses its DAG file when it starts. While a task of one of these DAGs starts, only the DAGs of its source
    are returned, so the number of sources does not slow tasks down.

    Args:
        names: of the sources; none for all sources of the configuration.

    Raises:
        LoaderError: the configuration is missing or wrong. It has no traceback, because Airflow shows it as an import
            error.
    """
    try:
        return _source_dags(names)
    except LoaderError as error:
        raise error.with_traceback(None) from None


def _source_dags(names: tuple[str, ...]) -> dict[str, DAG]:
    dags: dict[str, DAG] = {}
    sources = configured_sources(*names)
    _refuse_same_ids(sources)
    for source, configured in _needed(sources).items():
        made = [factory(source, configured.airflow) for factory in _FACTORIES.values()]
        dags |= {dag.dag_id: dag for dag in made}
    return dags


def _refuse_same_ids(sources: Iterable[str]) -> None:
    """Refuse sources whose DAGs would replace each other.

    Raises:
        UsageError: the DAGs of two sources have the same ids.
    """
    known: dict[str, str] = {}
    for source in sources:
        other = known.setdefault(dag_key(source), source)
        if other != source:
            raise UsageError(
                "two sources have the same ids of DAGs",
                why=f"the DAGs of {other} and {source} begin with {dag_key(source)}",
                hint="rename one of the sources",
                key="sources",
            )


def _needed(sources: Mapping[str, Source]) -> Mapping[str, Source]:
    """Return the source of the DAG whose task is starting; all sources if none is, or if it is the DAG of a user."""
    key, _, name = (get_parsing_context().dag_id or "").rpartition(".")
    starting = {source: found for source, found in sources.items() if dag_key(source) == key}
    return starting if starting and name in _FACTORIES else sources
