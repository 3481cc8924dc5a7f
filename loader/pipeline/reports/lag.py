"""How far a source is behind its server: positions, lag, runway, and tables that do not continue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loader.errors import LoaderError, SourceUnavailable
from loader.materialise.merge.cadence import cadence_note
from loader.materialise.merge.postponement import Postponement, waiting_note
from loader.materialise.rules import rule_of
from loader.model.position import Position
from loader.model.table import TableName
from loader.pipeline.chain.chain_begin import check_server
from loader.pipeline.chain.interval_lookup import newest_record
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.reports.commit_times import newest_commit_time
from loader.pipeline.reports.retention import source_runway
from loader.pipeline.upkeep.quarantine_release import quarantines_of
from loader.pipeline.upkeep.table_pauses import pauses_of
from loader.settings import SourceSettings
from loader.source.retention import Runway, read_event_time, read_start_time
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation
from loader.staging.filters import CapturedTables
from loader.staging.notes.pauses import Pause
from loader.staging.notes.quarantine import Quarantine
from loader.staging.published import Published
from loader.transport.server.connection import AccessDenied, connected, log_sizes

_PATIENCE_SECONDS = 10.0
"""A report does not wait longer for each answer of the server. The timeout of the source is for its longest statements.
It is as long as the timeout of a connection."""


class PostponedState(BaseModel):
    """A table that runs leave behind on purpose.

    Attributes:
        state: `paused`: a person paused it. `waiting`: it needs the rows of a paused table. `not due`: its rule merges
            it later.
        applied: its applied position; empty if it is unknown.
        short: the newest published record lists it as behind.
        note: why, for people.
        pause: of a paused table.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    state: Literal["paused", "waiting", "not due"]
    applied: str
    short: bool
    note: str
    pause: Pause | None = None


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
        released: tables behind that are no longer quarantined or postponed and that no run has merged since.
        postponed: tables that are left behind on purpose, sorted.
        rows: by table, the staged inserts, updates and deletes up to the newest published record; see Published.
        staged_bytes: by table, in the same way.
        stage_seconds: by stage (`extract`, `materialise`), how long the newest interval took from its plan to its
            manifest, and from there to its published record; with repeated tries and waiting. Without stages that it
            has not passed.
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
    postponed: tuple[PostponedState, ...] = ()
    rows: dict[str, tuple[int, int, int]] = {}
    staged_bytes: dict[str, int] = {}
    stage_seconds: dict[str, float] = {}
    unreachable: dict[str, Any] | None = None

    @property
    def tables_behind(self) -> tuple[str, ...]:
        """Return the tables without all records up to `applied`, except the postponed tables, sorted."""
        return tuple(sorted({*(one.table for one in self.quarantined), *self.released}))

    @property
    def applied_to(self) -> str:
        """Return which tables have everything up to `applied`, for people."""
        left = ["quarantined"] * bool(self.quarantined) + ["postponed"] * any(one.short for one in self.postponed)
        return f"all tables but the {' and '.join(left)} ones" if left else "all tables"


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
    newest = newest_record(chain, settings.catalog.place)
    current = newest if newest and newest.generation == generation.name else None
    applied = Position.parse(current.stop) if current else generation.start_position
    server = _server(settings, generation, applied)
    stopped = quarantines_of(settings).all()
    postponement = Postponement(pauses_of(settings).all(), newest, settings.rules)
    postponed = _postponed(postponement, str(applied))
    explained = {one.table for one in stopped.values()} | {one.table for one in postponed}
    return SourceLag(
        source=settings.name,
        server=server.name,
        log_end=server.end,
        planned=planned.stop if planned else generation.start,
        staged=staged.stop if staged else generation.start,
        applied=str(applied),
        staged_intervals=_staged_intervals(chain, generation, current),
        behind=server.behind,
        lag_seconds=_lag_seconds(chain, server.behind, newest),
        runway=server.runway,
        quarantined=tuple(stopped.values()),
        released=tuple(sorted(_captured(settings, newest.behind if newest else ()) - explained)),
        postponed=postponed,
        rows=newest.rows if newest else {},
        staged_bytes=newest.staged_bytes if newest else {},
        stage_seconds=chain.stage_seconds(generation.name),
        unreachable=server.error.as_dict() if server.error else None,
    )


def unapplied_seconds(settings: SourceSettings, lag: SourceLag) -> float | None:
    """Return the age of the oldest event of the log that is not applied; 0 without one, None if it is unknown.

    `lag_seconds` is the age of the newest applied commit. After a quiet time that is older than anything unapplied.

    Raises:
        LoaderError: the server does not answer.
    """
    if not lag.behind:
        return None if lag.behind is None else 0.0
    settings = _impatient(settings)
    transport, applied = settings.transport.open(), Position.parse(lag.applied)
    time = read_event_time(transport, applied.file, applied.logpos)
    if not time:  # the applied position is the end of a file that has a successor
        time = read_start_time(transport, replace(applied, lognum=applied.lognum + 1).file)
    return max(0.0, datetime.now(UTC).timestamp() - time)


def _captured(settings: SourceSettings, names: Iterable[str]) -> set[str]:
    is_captured = CapturedTables(settings.tables)
    return {name for name in names if is_captured(TableName.parse(name))}


def _postponed(postponement: Postponement, applied: str) -> tuple[PostponedState, ...]:
    """Return the states of the postponed tables. `applied`: the position of the newest record."""
    record, pauses = postponement.record, postponement.pauses
    found = [
        PostponedState(table=str(table), state="paused", applied="", short=False, note=pause.note, pause=pause)
        for table, pause in pauses.items()
    ]
    found += [
        PostponedState(table=name, state="waiting", applied="", short=False, note=waiting_note(other))
        for name, other in postponement.waiting().items()
    ]
    explained = {one.table for one in found}
    found += [
        PostponedState(table=name, state="not due", applied="", short=False, note=cadence_note(every, one.due))
        for name, one in (record.postponed.items() if record else ())
        if one.due and name not in explained and (every := rule_of(postponement.rules, TableName.parse(name)).every)
    ]
    return tuple(_placed(one, record, applied) for one in sorted(found, key=lambda one: one.table))


def _placed(state: PostponedState, record: Published | None, applied: str) -> PostponedState:
    """Return the state with the applied position of the table."""
    if record is None:
        return state
    if state.table in record.tables:
        return state.model_copy(update={"applied": applied})
    noted = record.postponed.get(state.table)
    short = state.table in record.behind
    return state.model_copy(update={"applied": noted.position if noted else "", "short": short})


def _staged_intervals(chain: PlanChain, generation: Generation, record: Published | None) -> int:
    start = record.stop_seqno if record else next(chain.ascending_starts(generation.name), None)
    return 0 if start is None else sum(1 for _ in chain.manifests_from(generation.name, start))


def _lag_seconds(chain: PlanChain, behind: int | None, record: Published | None) -> float | None:
    if behind == 0:
        return 0.0
    committed = newest_commit_time(chain, record) if record else None
    if committed is None:
        return None
    return max(0.0, round((datetime.now(UTC) - committed).total_seconds(), 3))


def _server(settings: SourceSettings, generation: Generation, applied: Position) -> _Server:
    """Ask the server. Staged and applied positions are known without it."""
    settings = _impatient(settings)
    try:
        identity, end = check_server(settings)
        name = f"{identity.kind} {identity.version} at {settings.server}"
        if not identity.same_server(generation.identity) or (end.lognum, end.logpos) < (applied.lognum, applied.logpos):
            return _Server(name, str(end))
        return _Server(name, str(end), _bytes_between(settings, applied, end), source_runway(settings))
    except (SourceUnavailable, AccessDenied) as error:
        return _Server(str(settings.server), error=error)


def _impatient(settings: SourceSettings) -> SourceSettings:
    """Return the settings with a short timeout: a server that accepts connections may never answer."""
    seconds = min(settings.server.read_timeout_seconds, _PATIENCE_SECONDS)
    server = settings.server.model_copy(update={"read_timeout_seconds": seconds})
    transport = settings.transport.model_copy(update={"server": server} if settings.transport.server else {})
    return settings.model_copy(update={"server": server, "transport": transport})


def _bytes_between(settings: SourceSettings, start: Position, stop: Position) -> int:
    if start.lognum == stop.lognum:
        return stop.logpos - start.logpos
    with connected(settings.server) as connection:
        sizes = log_sizes(connection)
    whole = sum(sizes.get(f"{start.basename}.{number:06d}", 0) for number in range(start.lognum, stop.lognum))
    return whole - start.logpos + stop.logpos
