"""The end of an extraction: XA transactions matched up, statements judged, the accounts closed, the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loader import __version__
from loader.errors import DataError
from loader.extract.held import Release, Settled, runs, settle, undecided_before
from loader.extract.judge import judge
from loader.extract.result import RangeResult
from loader.staging.documents import Balance, HeldGroup, Manifest, Plan
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


def manifest_of(
    plan: Plan,
    results: Sequence[RangeResult],
    held: tuple[HeldGroup, ...] = (),
    released: Sequence[RangeResult] = (),
) -> Manifest:
    """The manifest of all ranges of a plan, and of the groups that were held and are released in it.

    Raises:
        DataError, UnsupportedError: a statement that stops the interval, or accounts that do not close.
    """
    staged = [*results, *released]
    files = sorted((file for result in staged for file in result.files), key=lambda f: f.key.split("/", 4)[-1])
    schemas = {key: schema for result in staged for key, schema in result.schemas.items()}
    return Manifest(
        source=plan.source,
        generation=plan.generation,
        identity=plan.identity,
        start=plan.start,
        stop=plan.stop,
        start_seqno=plan.start_seqno,
        stop_seqno=plan.stop_seqno,
        files=tuple(files),
        schemas={key: schemas[key].as_dict() for key in sorted(schemas)},
        barriers=judge([s for result in results for s in result.statements], plan.tables),
        held=held,
        balance=_balance(plan, results, released),
        loader_version=__version__,
    )


def _balance(plan: Plan, results: Sequence[RangeResult], released: Sequence[RangeResult]) -> Balance:
    kinds: Counter[str] = Counter()
    for result in results:
        kinds.update(result.event_types)
    walked = sum(result.bytes for result in results)
    staged = sum(result.row_events_staged for result in results)
    held = sum(result.row_events_held for result in results)
    seen = sum(result.row_events for result in results)
    start, stop = plan.interval.start, plan.interval.stop
    if start.lognum == stop.lognum and walked != stop.logpos - start.logpos:
        raise DataError(
            "the accounts of the interval do not close: not every byte was walked exactly once",
            why=f"{walked} bytes were walked of {stop.logpos - start.logpos}",
            hint="this is a fault of the loader; please report it with the plan",
            interval=plan.start_seqno,
        )
    return Balance(
        events=sum(kinds.values()),
        bytes=walked,
        transactions=sum(result.transactions for result in results),
        event_types=dict(sorted(kinds.items())),
        row_events_staged=staged,
        row_events_held=held,
        row_events_released=sum(result.row_events_staged for result in released),
        skipped={"row events of tables that are not captured": seen - staged - held},
    )
