"""The source of a task."""

from __future__ import annotations

import os

from loader.airflow.configuration import SOURCE_VARIABLE
from loader.config import load_config
from loader.settings import SourceSettings


def settings_of(source: str) -> SourceSettings:
    """Return the settings of a source of the configuration at $LOADER_CONFIG.

    Without a name, the source is $LOADER_SOURCE, or the only one.

    Raises:
        UsageError: the configuration or the source does not exist.
    """
    return load_config().source(source or os.environ.get(SOURCE_VARIABLE, ""))
