"""The end of an extraction: statements judged, the accounts closed, the manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loader import __version__
from loader.errors import DataError
from loader.extract.judge import judge
from loader.extract.result import RangeResult
from loader.staging.documents import Balance, HeldGroup, Manifest, Plan


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
