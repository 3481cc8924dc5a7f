"""XA transactions once all ranges of a plan are extracted: which groups are staged now, which stay held."""

from __future__ import annotations

from collections.abc import Sequence

from loader.extract.held import Release, Settled, runs, settle, undecided_before
from loader.extract.result import RangeResult
from loader.staging.documents import Plan
from loader.transport.base import Transport

_GAP = 4 * 1024 * 1024  # of log that is read over rather than left out between two held groups


def settled_of(plan: Plan, transport: Transport, results: Sequence[RangeResult]) -> Settled:
    """How XA transactions stand after all ranges of a plan.

    Raises:
        DataError: the log does not hold what an XA COMMIT makes count, or is not what a server writes.
    """
    events = [event for result in results for event in result.xa]
    missing = undecided_before(plan.held, events)
    if not missing:
        return settle(plan.held, events)
    from loader.extract.search import find_prepared

    return settle((*plan.held, *find_prepared(transport, plan.interval.start, missing)), events)


def releases_of(plan: Plan, settled: Settled) -> list[list[Release]]:
    """The held groups to stage, in the runs that are staged together."""
    return list(runs(settled.releases, plan.part_bytes, _GAP))
