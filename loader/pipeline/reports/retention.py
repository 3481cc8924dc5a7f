"""How long the server keeps the log that is not staged yet."""

from __future__ import annotations

from loader.model.position import Position
from loader.pipeline.chain.plan_chain import chain_of
from loader.settings import SourceSettings
from loader.source.retention import Runway, read_runway
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation
from loader.transport.server.connection import connected


def source_runway(settings: SourceSettings) -> Runway:
    """Return the runway of the oldest log file that an extraction still needs.

    Raises:
        LoaderError: the source was never loaded, or the server does not answer.
    """
    chain = chain_of(settings)
    needed = oldest_needed_position(chain, chain.require_generation())
    with connected(settings.server) as connection:
        return read_runway(connection, settings.transport.open(), needed.file)


def oldest_needed_position(chain: PlanChain, generation: Generation) -> Position:
    """Return the first needed position: of the next interval, or of an XA transaction without an outcome."""
    known = chain.newest_checkpoint(generation)
    return min([known.position, *(Position.at(group.file, group.start) for group in known.held)])
