"""The outcomes of XA transactions after all ranges of a plan: which groups are staged, and which stay held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loader.extract.range_result import RangeResult
from loader.extract.xa.prepared_groups import (
    Release,
    Settled,
    find_unknown_commits,
    find_unknown_rollbacks,
    group_releases,
    is_undone,
    match_events,
)
from loader.extract.xa_events import Decided, XaEvent
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
    if missing := find_unknown_commits(held, events):
        from loader.extract.xa.prepare_search import find_prepared

        held = (*held, *find_prepared(transport, plan.interval.start, plan.skip, missing))
    settled = match_events(held, events)
    undone = _find_undone(plan, held, transport, events) if plan.identity.kind == "mariadb" else []
    return replace(settled, lost=(*settled.lost, *undone))


def _find_undone(
    plan: Plan, held: Sequence[HeldGroup], transport: Transport, events: Sequence[XaEvent]
) -> list[Decided]:
    """Return the rollbacks of groups whose commit the log has: their rows may be staged."""
    found, unseen = list[Decided](), dict[str, Decided]()
    for rollback, before in find_unknown_rollbacks(held, events):
        if is_undone(before, rollback):
            found.append(rollback)
        elif before is None:
            unseen[rollback.xid] = rollback
    if unseen:
        from loader.extract.xa.prepare_search import newest_events

        for newest in newest_events(transport, plan.interval.start, plan.skip, set(unseen)):
            found += [unseen[newest.xid]] if is_undone(newest, unseen[newest.xid]) else []
    return found


def plan_releases(plan: Plan, settled: Settled) -> list[list[Release]]:
    """Return the held groups to stage, in runs that are staged together."""
    return list(group_releases(settled.releases, plan.part_bytes, _GAP))
