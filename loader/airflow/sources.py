"""Which source a task works on."""

from __future__ import annotations

import os

from loader.airflow.configuration import SOURCE_VARIABLE
from loader.config import load_config
from loader.settings import SourceSettings


def settings_of(source: str) -> SourceSettings:
    """The settings of a source of the configuration at $LOADER_CONFIG; unnamed: that of $LOADER_SOURCE or the only one.

    Raises:
        UsageError: no configuration, or no such source.
    """
    return load_config().source(source or os.environ.get(SOURCE_VARIABLE, ""))
