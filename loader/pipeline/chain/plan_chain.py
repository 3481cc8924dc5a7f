"""The plan chain of a source."""

from __future__ import annotations

from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.store.registry import open_store


def chain_of(settings: SourceSettings) -> PlanChain:
    """Return the plan chain of a source."""
    return PlanChain(open_store(settings.staging_root), settings.name)
