"""The parts of the configuration that DAG files need.

Airflow parses DAG files every few seconds, so this module only reads the TOML, without models and drivers. The help
text of the form shows errors of the configuration. Tasks validate the whole configuration.
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
        sources: names of the sources, in the order of the file.
        chosen: the source of a run that names none; empty if there are several and none is chosen.
        pause_on_failure: whether the DAGs of any source pause themselves after a failed run.
        fault: why no source is known; empty if there are sources.
    """

    sources: tuple[str, ...] = ()
    chosen: str = ""
    pause_on_failure: bool = False
    fault: str = ""


def read_configured() -> Configured:
    """Read the configuration at `$LOADER_CONFIG`. Invalid content becomes `fault`, not an exception."""
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
