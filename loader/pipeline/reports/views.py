"""Consistent views: every table at one position of the log, from the published records."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from loader.errors import DataError, UsageError
from loader.materialise.quoting import table_identifier
from loader.model.moment import moment
from loader.model.position import SEQNO_UNIT, Position
from loader.model.table import TableName
from loader.pipeline.chain.plan_chain import chain_of
from loader.reader.seek.position_spec import At, Since, parse_place
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.interval_starts import ENDLESS
from loader.staging.published import Published


class TableView(BaseModel):
    """A table in a view: its Iceberg snapshot, and the query that reads it."""

    model_config = ConfigDict(frozen=True)

    table: str
    snapshot: int
    applied_seqno: int
    query: str


class View(BaseModel):
    """Every table as of the position `stop`.

    Attributes:
        committed_at: the newest commit time up to `stop`, in UTC; empty if nothing was committed.
        missing: tables that were behind then, and are not in the view.
    """

    model_config = ConfigDict(frozen=True)

    source: str
    generation: str
    stop: str
    stop_seqno: int
    committed_at: str
    tables: tuple[TableView, ...]
    missing: tuple[str, ...]


def view(settings: SourceSettings, as_of: str = "") -> View:
    """Return the newest published view, or the newest view with nothing after a position or time.

    `as_of`: `binlog.000054:123`, a seqno, or a commit time such as `2026-01-31T12:00:00Z`. A position belongs to the
    newest generation that starts at or before it.

    Raises:
        UsageError: `as_of` has another form.
        DataError: there is no view, or every view is newer than `as_of`.
    """
    chain = chain_of(settings)
    lineage = chain.lineage(chain.require_generation().name)
    found: tuple[Published, str] | None = None
    seqno, time = _limit(as_of, lineage) if as_of else (None, "")
    place, newest = settings.catalog.place, None if time else _newest(chain, lineage, seqno)
    if newest is not None and newest.committed_at and newest.is_of(place):
        return _view(settings, newest, newest.committed_at)
    committed_at = ""
    for manifest in _applied(chain, lineage):
        committed_at = max(committed_at, manifest.committed_at)  # clocks can go back, positions cannot
        if (time and committed_at > time) or (seqno is not None and manifest.stop_seqno > seqno):
            break
        record = chain.published(manifest.generation, manifest.start_seqno)
        if record and record.is_of(place):
            found = record, committed_at
    if found is None:
        raise DataError(
            "no consistent view of the tables was published" + (f" at or before {as_of}" if as_of else " yet"),
            hint="list the intervals and their states: loader intervals",
            source=settings.name,
        )
    return _view(settings, *found)


def _newest(chain: PlanChain, lineage: Sequence[Generation], seqno: int | None) -> Published | None:
    """Return the newest published record, or the newest one with nothing after a seqno."""
    stop = ENDLESS
    for one in reversed(lineage):
        newest = chain.newest_published(one.name)
        if newest and newest[1].stop_seqno <= min(stop, ENDLESS if seqno is None else seqno):
            return newest[1]
        below = min(stop, ENDLESS if seqno is None else seqno)
        records = (
            (chain.published(one.name, start) for start in chain.descending_starts(one.name, below)) if newest else ()
        )
        if found := next((record for record in records if record and record.stop_seqno <= below), None):
            return found
        stop = one.follows.stop_seqno if one.follows else stop
    return None


def _applied(chain: PlanChain, lineage: Sequence[Generation]) -> list[Manifest]:
    """Return the manifests of valid intervals of all generations, in log order."""
    found = []
    for one in lineage:
        following = next((newer.follows for newer in lineage if newer.follows and newer.follows.name == one.name), None)
        starts = (start for start in chain.starts(one.name) if following is None or start < following.stop_seqno)
        found += [manifest for start in starts if (manifest := chain.manifest(one.name, start))]
    return found


def _limit(as_of: str, lineage: Sequence[Generation]) -> tuple[int | None, str]:
    """Return the seqno or the time, as manifests write it, after which the view must have nothing."""
    place = parse_place(as_of)
    if isinstance(place, Since):
        return None, moment(place.micros)
    if isinstance(place, At) and not place.file:
        return place.lognum * SEQNO_UNIT + place.logpos, ""
    if isinstance(place, At):
        position = Position.at(place.file, place.logpos)
        for one in reversed(lineage):
            start = one.start_position
            if start.basename == position.basename and start <= position:
                return position.seqno(one.shift), ""
        raise DataError(
            "the position is before the start of the log that was read",
            hint="list what was read with: loader intervals --limit 0",
            position=position,
            starts=lineage[0].start,
        )
    raise UsageError(
        f"{as_of!r} is not a position or time of the log",
        hint="write it like binlog.000054:123 or 2026-01-31T12:00:00Z",
    )


def _view(settings: SourceSettings, record: Published, committed_at: str) -> View:
    tables = []
    for name, table in sorted(record.tables.items()):
        quoted = table_identifier(settings.catalog.name, settings.catalog.type, TableName.parse(name))
        query = f"SELECT * FROM {quoted} VERSION AS OF {table.snapshot}"
        tables.append(TableView(table=name, snapshot=table.snapshot, applied_seqno=table.applied, query=query))
    return View(
        source=record.source,
        generation=record.generation,
        stop=record.stop,
        stop_seqno=record.stop_seqno,
        committed_at=committed_at,
        tables=tuple(tables),
        missing=tuple(sorted(record.behind)),
    )
