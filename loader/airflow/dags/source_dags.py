"""The DAGs of the sources of the configuration."""

from __future__ import annotations

from airflow.sdk import DAG

from loader.airflow.dags.check import check_dag
from loader.airflow.dags.delta import delta_dag
from loader.airflow.dags.initial_load import initial_load_dag
from loader.airflow.dags.maintain import maintain_dag
from loader.airflow.dags.repair import repair_dag
from loader.airflow.dags.replay import replay_dag
from loader.airflow.sources import configured_sources
from loader.errors import LoaderError

_FACTORIES = (delta_dag, initial_load_dag, replay_dag, repair_dag, maintain_dag, check_dag)


def source_dags(*names: str) -> dict[str, DAG]:
    """Return the DAGs of sources by DAG id. The configuration is read and nothing is connected to.

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
    for source, configured in configured_sources(*names).items():
        made = [factory(source, configured.airflow) for factory in _FACTORIES]
        dags |= {dag.dag_id: dag for dag in made}
    return dags
