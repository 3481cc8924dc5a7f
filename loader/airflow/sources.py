"""The source of a task."""

from __future__ import annotations

from loader.config import load_config
from loader.settings import SourceSettings


def settings_of(source: str) -> SourceSettings:
    """Return the settings of a source of the configuration at $LOADER_CONFIG; without a name, of the only source.

    Raises:
        UsageError: the configuration or the source does not exist.
    """
    return load_config().source(source)
