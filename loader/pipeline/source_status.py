"""Status of a source and its tables, for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from loader.errors import LoaderError, SourceUnavailable
from loader.initial_load.load_states import LoadState, unfinished_loads
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.chain_begin import chain_of, check_server
from loader.pipeline.quarantine_release import quarantines_of
from loader.pipeline.retention import source_runway
from loader.settings import SourceSettings
from loader.source.retention import Runway
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Published
from loader.staging.quarantine import Quarantine
from loader.transport.server.connection import AccessDenied, connected, log_sizes


class TableState(BaseModel):
    """A table in the newest published record; `exact`: its applied position is past the end of its initial load."""

    model_config = ConfigDict(frozen=True)

    table: str
    applied_seqno: int
    snapshot: int
    exact: bool


class SourceStatus(BaseModel):
    """The status of a source.

    Attributes:
        server: name, version and address; only the address if the server was not reachable.
        behind: bytes of log after the last applied position; None if the server is another one than before, or its log
            ends before that position.
        runway: of the oldest log file that is not staged; None as `behind`.
        quarantined: tables that are not attempted until they are released.
        released: tables behind that are no longer quarantined and that no run has merged since.
        unreachable: why the server was not asked, in the form of `LoaderError.as_dict()`; then `log_end` is empty.
        loads: initial loads that are not in the warehouse yet.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    server: str
    log_end: str
    planned: str
    staged: str
    applied: str
    behind: int | None
    runway: Runway | None
    tables: tuple[TableState, ...]
    quarantined: tuple[Quarantine, ...]
    released: tuple[str, ...]
    loads: tuple[LoadState, ...] = ()
    unreachable: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Server:
    """The part of the status that the server tells; see SourceStatus."""

    name: str
    end: str = ""
    behind: int | None = None
    runway: Runway | None = None
    error: LoaderError | None = None


def status(settings: SourceSettings) -> SourceStatus:
    """Return the status of the source.

    Raises:
        LoaderError: the source was never loaded, or the store does not answer.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    planned, staged = chain.newest_plan(generation.name), chain.newest_manifest(generation.name)
    newest = _newest_record(chain)
    applied = (
        Position.parse(newest.stop) if newest and newest.generation == generation.name else generation.start_position
    )
    server = _server(settings, generation, applied)
    stopped = quarantines_of(settings).all()
    return SourceStatus(
        source=settings.name,
        server=server.name,
        log_end=server.end,
        planned=planned.stop if planned else generation.start,
        staged=staged.stop if staged else generation.start,
        applied=str(applied),
        behind=server.behind,
        runway=server.runway,
        tables=tuple(
            TableState(
                table=name,
                applied_seqno=table.applied,
                snapshot=table.snapshot,
                exact=newest.stop_seqno >= _exact_at(chain, TableName.parse(name)),
            )
            for name, table in sorted(newest.tables.items())
        )
        if newest
        else (),
        quarantined=tuple(stopped.values()),
        released=tuple(sorted(set(newest.behind if newest else ()) - {one.table for one in stopped.values()})),
        loads=tuple(_loads(chain, generation, newest)),
        unreachable=server.error.as_dict() if server.error else None,
    )


def _loads(chain: PlanChain, generation: Generation, newest: Published | None) -> Iterator[LoadState]:
    """Yield the loads that are not in the warehouse.

    A table in the newest published record counts as loaded: older versions of the loader did not note finished loads.
    """
    published = newest.tables if newest else {}
    for load in unfinished_loads(chain.store, chain.source, generation.name):
        if not load.finished or load.table not in published:
            yield load


def _server(settings: SourceSettings, generation: Generation, applied: Position) -> _Server:
    """Ask the server. Staged and applied positions are known without it."""
    try:
        identity, end = check_server(settings)
        name = f"{identity.kind} {identity.version} at {settings.server}"
        if not identity.same_server(generation.identity) or (end.lognum, end.logpos) < (applied.lognum, applied.logpos):
            return _Server(name, str(end))
        return _Server(name, str(end), _bytes_between(settings, applied, end), source_runway(settings))
    except (SourceUnavailable, AccessDenied) as error:
        return _Server(str(settings.server), error=error)


def _newest_record(chain: PlanChain) -> Published | None:
    """Return the published record of the latest interval that has one, of any generation."""
    for generation in reversed(chain.generations()):
        if newest := chain.newest_published(generation.name):
            return newest[1]
    return None


def _exact_at(chain: PlanChain, table: TableName) -> int:
    """Return the seqno from which the newest initial load of a table is exact; 0 without a load."""
    return max(chain.exact_seqno(generation.name, table) for generation in chain.generations())


def _bytes_between(settings: SourceSettings, start: Position, stop: Position) -> int:
    if start.lognum == stop.lognum:
        return stop.logpos - start.logpos
    with connected(settings.server) as connection:
        sizes = log_sizes(connection)
    whole = sum(sizes.get(f"{start.basename}.{number:06d}", 0) for number in range(start.lognum, stop.lognum))
    return whole - start.logpos + stop.logpos
