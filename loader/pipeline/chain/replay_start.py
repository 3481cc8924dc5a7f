"""Where a replay starts, as people name it: a position, a time, or a GTID set. Only staged documents are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loader.errors import DataError, UsageError
from loader.model.gtid import missing_gtids
from loader.model.moment import moment
from loader.model.position import Position
from loader.pipeline.chain.plan_chain import chain_of
from loader.reader.seek.position_spec import After, At, Begin, End, Since, parse_place
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.interval_starts import ENDLESS


@dataclass(frozen=True)
class ReplayStart:
    """The first position that a replay reads, and its seqno."""

    position: str
    seqno: int


def find_replay_start(settings: SourceSettings, text: str) -> ReplayStart:
    """Return the start of a replay. Earlier log than was asked for may be read, never less.

    A time means the start of the first staged interval with a transaction committed then or later. A GTID set means the
    start of the first interval with a transaction outside the set. A position belongs to the newest generation that
    starts at or before it. A position before the first generation means its start, because the initial load has
    everything before. `begin` is the oldest position from which the log was read without a gap. A position may not be
    after everything that is staged, or loaded: nothing could be compared from there on.

    Args:
        settings: of the source.
        text: see loader.reader.seek.position_spec.

    Raises:
        UsageError: the text is no place, or names the end of the log.
        DataError: the position is before a gap in the log that was read, after its end, or of another log. Or nothing
            is staged after that time or GTID set.
    """
    chain = chain_of(settings)
    lineage = _without_gap(chain.lineage(chain.require_generation().name))
    if text.isdecimal():
        return _at_seqno(settings, chain, lineage, int(text))
    match parse_place(text):
        case Begin():
            return _start_of(lineage[0])
        case At(file, lognum, logpos):
            return _at_position(settings, chain, lineage, file, lognum, logpos)
        case Since(micros):
            since = moment(micros)
            return _first_interval(settings, chain, lineage, text, lambda found: found.committed_at >= since)
        case After(gtids):
            known = str(gtids)
            return _first_interval(
                settings, chain, lineage, text, lambda found: bool(missing_gtids(found.gtids, known))
            )
        case End():
            raise UsageError("a replay cannot start at the end of the log", hint="name an earlier position or a time")


def find_replay_end(settings: SourceSettings, text: str, start: ReplayStart) -> int:
    """Return the seqno up to which a replay compares rows that changed.

    Args:
        settings: of the source.
        text: `binlog.000054:123`, `54:123`, or a seqno.
        start: of the replay.

    Raises:
        UsageError: the text is no position, or a position before the start.
        DataError: the position is before a gap in the log that was read, after its end, or of another log.
    """
    if not text.isdecimal() and not _is_position(text):
        raise UsageError(f"{text!r} is no end of a replay", why="it ends at a position", hint="--to binlog.000054:123")
    end = find_replay_start(settings, text).seqno
    if end <= start.seqno:
        raise UsageError(
            "the replay ends before it starts", why=f"it starts at {start.position}", hint="choose a later position"
        )
    return end


def _is_position(text: str) -> bool:
    try:
        return isinstance(parse_place(text), At)
    except UsageError:
        return False


def _without_gap(lineage: tuple[Generation, ...]) -> tuple[Generation, ...]:
    """Return the newest generations between which all of the log was read, oldest first."""
    gaps = [number for number, one in enumerate(lineage) if one.gap]
    return lineage[gaps[-1] :] if gaps else lineage


def _start_of(generation: Generation) -> ReplayStart:
    return ReplayStart(generation.start, generation.start_position.seqno(generation.shift))


def _at_position(
    settings: SourceSettings,
    chain: PlanChain,
    lineage: tuple[Generation, ...],
    file: str,
    lognum: int,
    logpos: int,
) -> ReplayStart:
    for one in reversed(lineage):
        start = one.start_position
        position = Position.at(file, logpos) if file else Position(start.basename, lognum, logpos)
        if position.basename != start.basename:
            continue
        if start <= position:
            return _read_start(settings, chain, one, position)
        if one is lineage[0] and not one.gap:
            return _start_of(one)
    raise _unread(settings, lineage)


def _at_seqno(settings: SourceSettings, chain: PlanChain, lineage: tuple[Generation, ...], seqno: int) -> ReplayStart:
    for one in reversed(lineage):
        if _start_of(one).seqno <= seqno:
            position = Position.of_seqno(one.start_position.basename, seqno, one.shift)
            return _read_start(settings, chain, one, position)
    if lineage[0].gap:
        raise _unread(settings, lineage)
    return _start_of(lineage[0])


def _read_start(settings: SourceSettings, chain: PlanChain, generation: Generation, position: Position) -> ReplayStart:
    """Return a start in a generation.

    Raises:
        DataError: the start is after everything that was read.
    """
    newest, seqno = chain.newest_manifest(generation.name), position.seqno(generation.shift)
    end, reached = (newest.stop, newest.stop_seqno) if newest else (generation.start, _start_of(generation).seqno)
    # A table without a key is also replayed from the snapshot of its load, which may be after that.
    if seqno > reached and not chain.loads.has_from(generation.name, seqno):
        raise DataError(
            "the log was not read up to that position",
            why=f"what is staged ends at {end}",
            hint=f"name a position up to {end}; to read and merge newer log first: loader run",
            source=settings.name,
            position=position,
        )
    return ReplayStart(str(position), seqno)


def _unread(settings: SourceSettings, lineage: tuple[Generation, ...]) -> DataError:
    oldest = lineage[0]
    return DataError(
        "the log was not read from that position on without a gap",
        why=f"before {oldest.start}: {oldest.gap}" if oldest.gap else f"the log that was read starts at {oldest.start}",
        hint=f"loader replay --from {oldest.start}",
        source=settings.name,
    )


def _first_interval(
    settings: SourceSettings,
    chain: PlanChain,
    lineage: tuple[Generation, ...],
    text: str,
    reaches: Callable[[Manifest], bool],
) -> ReplayStart:
    for manifest in _staged(chain, lineage):
        if reaches(manifest):
            return ReplayStart(manifest.start, manifest.start_seqno)
    raise DataError(
        f"nothing after {text} is staged", hint="list what is staged: loader intervals", source=settings.name
    )


def _staged(chain: PlanChain, lineage: tuple[Generation, ...]) -> Iterator[Manifest]:
    """Yield the manifests of the generations in log order, without superseded intervals."""
    stops = [newer.follows.stop_seqno if newer.follows else ENDLESS for newer in lineage[1:]]
    for one, stop in zip(lineage, [*stops, ENDLESS], strict=True):
        for start in chain.ascending_starts(one.name):
            manifest = chain.manifest(one.name, start) if start < stop else None
            if manifest is None:
                break
            yield manifest
