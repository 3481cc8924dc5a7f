"""The DAGs of all sources in the configuration at $LOADER_CONFIG: `shop.delta`, `shop.initial_load` and so on.

A wrong configuration is an import error of this file. Nothing is connected to while Airflow reads it.
"""

from __future__ import annotations

from loader.airflow.dags.source_dags import source_dags

globals().update(source_dags())
