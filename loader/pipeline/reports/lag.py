"""How far a source is behind its server: positions, lag, runway, and tables that do not continue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from loader.errors import LoaderError, SourceUnavailable
from loader.model.position import Position
from loader.pipeline.chain.chain_begin import chain_of, check_server
from loader.pipeline.reports.retention import source_runway
from loader.pipeline.upkeep.quarantine_release import quarantines_of
from loader.settings import SourceSettings
from loader.source.retention import Runway
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Published
from loader.staging.quarantine import Quarantine
from loader.transport.server.connection import AccessDenied, connected, log_sizes


class SourceLag(BaseModel):
    """How far a source is behind its server.

    Attributes:
        server: name, version and address; only the address if the server was not reachable.
        staged_intervals: intervals that are staged and not applied.
        behind: bytes of log after the last applied position; None if the server is another one than before, or its log
            ends before that position.
        lag_seconds: age of the newest applied commit, 0 if the end of the log is applied; None if it is unknown.
        runway: of the oldest log file that is not staged; None as `behind`.
        quarantined: tables that are not attempted until they are released.
        released: tables behind that are no longer quarantined and that no run has merged since.
        unreachable: why the server was not asked, in the form of `LoaderError.as_dict()`; then `log_end` is empty.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    server: str
    log_end: str
    planned: str
    staged: str
    applied: str
    staged_intervals: int
    behind: int | None
    lag_seconds: float | None
    runway: Runway | None
    quarantined: tuple[Quarantine, ...]
    released: tuple[str, ...]
    unreachable: dict[str, Any] | None = None

    @property
    def tables_behind(self) -> tuple[str, ...]:
        """Return the tables without all records up to `applied`, sorted."""
        return tuple(sorted({*(one.table for one in self.quarantined), *self.released}))


@dataclass(frozen=True)
class _Server:
    """The part of the status that the server tells; see SourceLag."""

    name: str
    end: str = ""
    behind: int | None = None
    runway: Runway | None = None
    error: LoaderError | None = None


def source_lag(settings: SourceSettings) -> SourceLag:
    """Return how far the source is behind. The number of requests does not depend on the number of tables.

    Raises:
        LoaderError: the source was never loaded, or the store does not answer.
    """
    chain = chain_of(settings)
    generation = chain.require_generation()
    planned, staged = chain.newest_plan(generation.name), chain.newest_manifest(generation.name)
    newest = newest_record(chain)
    current = newest if newest and newest.generation == generation.name else None
    applied = Position.parse(current.stop) if current else generation.start_position
    server = _server(settings, generation, applied)
    stopped = quarantines_of(settings).all()
    return SourceLag(
        source=settings.name,
        server=server.name,
        log_end=server.end,
        planned=planned.stop if planned else generation.start,
        staged=staged.stop if staged else generation.start,
        applied=str(applied),
        staged_intervals=_staged_intervals(chain, generation, current),
        behind=server.behind,
        lag_seconds=_lag_seconds(server.behind, newest),
        runway=server.runway,
        quarantined=tuple(stopped.values()),
        released=tuple(sorted(set(newest.behind if newest else ()) - {one.table for one in stopped.values()})),
        unreachable=server.error.as_dict() if server.error else None,
    )


def newest_record(chain: PlanChain) -> Published | None:
    """Return the published record of the latest interval that has one, of any generation."""
    for generation in reversed(chain.generations()):
        if newest := chain.newest_published(generation.name):
            return newest[1]
    return None


def _staged_intervals(chain: PlanChain, generation: Generation, record: Published | None) -> int:
    start = record.stop_seqno if record else next(chain.ascending_starts(generation.name), None)
    return 0 if start is None else sum(1 for _ in chain.manifests_from(generation.name, start))


def _lag_seconds(behind: int | None, record: Published | None) -> float | None:
    if behind == 0:
        return 0.0
    if record is None or not record.committed_at:
        return None
    committed = datetime.fromisoformat(record.committed_at).replace(tzinfo=UTC)
    return max(0.0, round((datetime.now(UTC) - committed).total_seconds(), 3))


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


def _bytes_between(settings: SourceSettings, start: Position, stop: Position) -> int:
    if start.lognum == stop.lognum:
        return stop.logpos - start.logpos
    with connected(settings.server) as connection:
        sizes = log_sizes(connection)
    whole = sum(sizes.get(f"{start.basename}.{number:06d}", 0) for number in range(start.lognum, stop.lognum))
    return whole - start.logpos + stop.logpos
