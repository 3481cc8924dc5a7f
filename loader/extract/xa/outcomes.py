"""The outcomes of XA transactions after all ranges of a plan: which groups are staged, and which stay held."""

from __future__ import annotations

from collections.abc import Sequence

from loader.extract.range_result import RangeResult
from loader.extract.xa.prepared_groups import Release, Settled, find_unknown_commits, group_releases, match_events
from loader.staging.documents import HeldGroup, Plan
from loader.transport.base import Transport

_GAP = 4 * 1024 * 1024  # bytes of log between two held groups that are read instead of skipped


def settle_groups(
    plan: Plan, held: Sequence[HeldGroup], transport: Transport, results: Sequence[RangeResult]
) -> Settled:
    """Return the state of XA transactions after all ranges of a plan.

    `held`: groups that earlier intervals carry over.

    Raises:
        DataError: the log lacks the rows of an XA COMMIT, or is not what a server writes.
    """
    events = [event for result in results for event in result.xa]
    missing = find_unknown_commits(held, events)
    if not missing:
        return match_events(held, events)
    from loader.extract.xa.prepare_search import find_prepared

    return match_events((*held, *find_prepared(transport, plan.interval.start, plan.skip, missing)), events)


def plan_releases(plan: Plan, settled: Settled) -> list[list[Release]]:
    """Return the held groups to stage, in runs that are staged together."""
    return list(group_releases(settled.releases, plan.part_bytes, _GAP))
