"""What DAG files need of the configuration.

Airflow parses them every few seconds, so this reads the TOML alone: no model of the configuration, no driver. A fault
of the configuration is told by the form's help text here, and by the tasks, which read it whole.
"""

from __future__ import annotations

import os
import tomllib
from typing import Any, NamedTuple

from loader.resources import config_file

SOURCE_VARIABLE = "LOADER_SOURCE"


class Configured(NamedTuple):
    """The configured sources.

    Attributes:
        sources: their names, in the order of the file.
        chosen: the one that a run without a source works on; empty where nobody chose one of several.
        pause_on_failure: some source's DAGs pause themselves when a run fails.
        fault: why no source can be named; empty where there are sources.
    """

    sources: tuple[str, ...] = ()
    chosen: str = ""
    pause_on_failure: bool = False
    fault: str = ""


def read_configured() -> Configured:
    """Read the configuration at `$LOADER_CONFIG`; nothing is raised, whatever it holds."""
    file = config_file().absolute()
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Configured(fault=f"There is no configuration at {file}.")
    except (OSError, ValueError) as error:
        return Configured(fault=f"The configuration at {file} cannot be read: {error}.")
    sources: Any = data.get("sources")
    if not isinstance(sources, dict) or not sources:
        return Configured(fault=f"The configuration at {file} has no [sources.NAME].")
    return Configured(
        sources=tuple(sources),
        chosen=_chosen(tuple(sources)),
        pause_on_failure=any(map(_pauses, sources.values())),
    )


def _chosen(sources: tuple[str, ...]) -> str:
    named = os.environ.get(SOURCE_VARIABLE, "")
    if named:
        return named if named in sources else ""
    return sources[0] if len(sources) == 1 else ""


def _pauses(source: Any) -> bool:
    airflow = source.get("airflow") if isinstance(source, dict) else None
    return isinstance(airflow, dict) and airflow.get("pause_on_failure") is True
