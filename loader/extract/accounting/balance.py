"""The balance of an interval: every byte of its log is walked exactly once, and every row event is accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loader.errors import DataError
from loader.extract.accounting.accounts import SKIPPED_BYTES, UNCAPTURED
from loader.extract.range_result import RangeResult
from loader.staging.documents import Plan
from loader.staging.entries import Balance
from loader.transport.base import Segment

_FAULT = "this is a bug in the loader; please report it with the plan"


def close_balance(
    plan: Plan, segments: Sequence[Segment], results: Sequence[RangeResult], released: Sequence[RangeResult]
) -> Balance:
    """Return the balance over an interval's bytes in each log file, and over its row events.

    Args:
        plan: of the interval.
        segments: the interval's bytes in each log file, from the sizes of the files.
        results: of the interval's ranges.
        released: of held XA groups that are staged in this interval.

    Raises:
        DataError: a byte was not walked or walked twice; or a row event is neither staged nor held nor skipped, or
            counted twice.
    """
    _check_bytes(plan, segments, results)
    staged = sum(result.row_events_staged for result in results)
    held = sum(result.row_events_held for result in results)
    skipped: Counter[str] = Counter({UNCAPTURED: 0})
    for result in results:
        skipped.update(result.row_events_skipped)
    seen = sum(result.row_events for result in results)
    if seen != staged + held + skipped.total():
        raise DataError(
            "the balance of the interval does not close: row events are missing or counted twice",
            why=f"of {seen} row events {staged} were staged, {held} held and {skipped.total()} skipped",
            hint=_FAULT,
            interval=plan.start_seqno,
        )
    for result in released:
        skipped.update(result.row_events_skipped)
    kinds: Counter[str] = Counter()
    for result in results:
        kinds.update(result.event_types)
    return Balance(
        events=sum(kinds.values()),
        bytes=sum(result.bytes for result in results),
        transactions=sum(result.transactions for result in results),
        event_types=dict(sorted(kinds.items())),
        row_events_staged=staged,
        row_events_held=held,
        row_events_released=sum(result.row_events_staged for result in released),
        skipped=dict(skipped) | _bytes_not_staged(results),
    )


def _check_bytes(plan: Plan, segments: Sequence[Segment], results: Sequence[RangeResult]) -> None:
    """Compare the walked bytes of each log file with its bytes in the interval."""
    wanted = {file: end - begin for file, begin, end in segments if begin < end}
    walked: Counter[str] = Counter()
    for result in results:
        walked[result.file] += result.bytes + result.bytes_torn
    for file in sorted(wanted.keys() | walked.keys()):
        if walked[file] != wanted.get(file, 0):
            raise DataError(
                "the balance of the interval does not close: bytes were not walked, or were walked twice",
                why=f"{walked[file]} bytes were walked of {wanted.get(file, 0)}",
                hint=_FAULT,
                file=file,
                interval=plan.start_seqno,
            )


def _bytes_not_staged(results: Sequence[RangeResult]) -> dict[str, int]:
    found = {
        "bytes of transactions that a crash of the server cut off": sum(result.bytes_cut_off for result in results),
        SKIPPED_BYTES: sum(result.bytes_skipped for result in results),
    }
    return {name: count for name, count in found.items() if count}
