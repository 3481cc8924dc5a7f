"""Intervals and stops as people name them: by a position of the log, or by a seqno."""

from __future__ import annotations

from loader.errors import DataError
from loader.model.position import Position
from loader.pipeline.chain.plan_chain import chain_of
from loader.settings import SourceSettings
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation
from loader.staging.published import Published


def find_interval(settings: SourceSettings, start: str) -> int:
    """Return the start seqno of an interval.

    Args:
        settings: of the source.
        start: where the interval starts: `binlog.000054:123`, or the seqno of that position.

    Raises:
        UsageError: `start` is neither a position nor a seqno.
        DataError: no interval starts at that position.
    """
    if start.isdecimal():
        return int(start)
    position = Position.parse(start)
    chain = chain_of(settings)
    for generation in reversed(chain.generations()):
        if _may_hold(generation, position) and chain.plan(generation.name, position.seqno(generation.shift)):
            return position.seqno(generation.shift)
    raise DataError(
        "no interval starts there", hint="list them with: loader intervals", source=settings.name, position=position
    )


def find_stop(settings: SourceSettings, stop: str) -> int:
    """Return the seqno of a position up to which tables are to be brought.

    Args:
        settings: of the source.
        stop: `binlog.000054:123`, or its seqno. A position belongs to the newest generation that starts before it.

    Raises:
        UsageError: `stop` is neither a position nor a seqno.
        DataError: no generation of the log has that position, or a newer generation continues from an earlier one.
    """
    if stop.isdecimal():
        return int(stop)
    position = Position.parse(stop)
    chain = chain_of(settings)
    why, newer = "", None
    for generation in reversed(chain.lineage(chain.require_generation().name)):
        if _may_hold(generation, position):
            seqno = position.seqno(generation.shift)
            if newer is None or newer.follows is None or seqno <= newer.follows.stop_seqno:
                return seqno
            why = f"reading went on before it, at {newer.start} of another log"
            break
        newer = generation
    raise DataError(
        "the log was not read at that position",
        why=why,
        hint="list what was read with: loader intervals",
        source=settings.name,
        position=position,
    )


def _may_hold(generation: Generation, position: Position) -> bool:
    start = generation.start_position
    return start.basename == position.basename and start <= position


def newest_record(chain: PlanChain, warehouse: str | None = None) -> Published | None:
    """Return the published record of the latest interval that has one, of any generation.

    Return None if it is of another warehouse: it tells nothing of the tables in this one.

    `warehouse`: see Published; None for any.
    """
    for generation in reversed(chain.generations()):
        if newest := chain.newest_published(generation.name):
            return newest[1] if warehouse is None or newest[1].is_of(warehouse) else None
    return None
