"""XA transactions once all ranges of a plan are extracted: which groups are staged now, which stay held."""

from __future__ import annotations

from collections.abc import Sequence

from loader.extract.range_result import RangeResult
from loader.extract.xa.prepared_groups import Release, Settled, find_unknown_commits, group_releases, match_events
from loader.staging.documents import HeldGroup, Plan
from loader.transport.base import Transport

_GAP = 4 * 1024 * 1024  # of log that is read over rather than left out between two held groups


def settle_groups(
    plan: Plan, held: Sequence[HeldGroup], transport: Transport, results: Sequence[RangeResult]
) -> Settled:
    """How XA transactions stand after all ranges of a plan, into which the groups `held` are carried.

    Raises:
        DataError: the log does not hold what an XA COMMIT makes count, or is not what a server writes.
    """
    events = [event for result in results for event in result.xa]
    missing = find_unknown_commits(held, events)
    if not missing:
        return match_events(held, events)
    from loader.extract.xa.prepare_search import find_prepared

    return match_events((*held, *find_prepared(transport, plan.interval.start, plan.skip, missing)), events)


def plan_releases(plan: Plan, settled: Settled) -> list[list[Release]]:
    """The held groups to stage, in the runs that are staged together."""
    return list(group_releases(settled.releases, plan.part_bytes, _GAP))
