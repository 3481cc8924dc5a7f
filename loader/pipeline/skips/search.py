"""Finding the transaction that an operator names: by a GTID, by a position in it, or by its seqno."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.errors import UsageError
from loader.model.gtid import Gtid, MariadbGtidSet, MysqlGtid, missing_gtids, parse_gtid_set
from loader.model.position import Interval, Position
from loader.pipeline.chain.failover import generation_transport
from loader.settings import SourceSettings
from loader.source import continuity, server_facts
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.interval_starts import ENDLESS
from loader.transport.server.connection import connected

if TYPE_CHECKING:
    from loader.extract.transaction_search import FoundTransaction, Sought

_FORMS = "write a GTID, a position in the transaction like binlog.000054:123, or its seqno"


@dataclass(frozen=True)
class Place:
    """A transaction as an operator names it. One of the fields is set.

    Attributes:
        gtid: of the transaction.
        position: in the transaction, or at its start.
        seqno: of the transaction.
    """

    gtid: Gtid | None = None
    position: Position | None = None
    seqno: int = 0


@dataclass(frozen=True)
class Part:
    """A part of the log to search, and the manifest of its interval if it is staged.

    Attributes:
        log: None if the log ends where the staged intervals end.
    """

    generation: Generation
    log: Interval | None
    staged: Manifest | None = None


def parse_transaction(text: str) -> Place:
    """Parse the name of a transaction.

    Raises:
        UsageError: the text names no transaction, or several.
    """
    if text.isascii() and text.isdigit():
        return Place(seqno=int(text))
    if "." in text:
        return Place(position=Position.parse(text))
    try:
        gtids = parse_gtid_set(text)
    except UsageError as error:
        raise UsageError(f"{text!r} does not name one transaction", why=str(error.what), hint=_FORMS) from error
    if isinstance(gtids, MariadbGtidSet):
        found: list[Gtid] = list(gtids.newest.values()) if "," not in text else []
    else:
        found = [MysqlGtid(name, a) for name, ranges in gtids.ranges.items() for a, b in ranges if a == b]
    if len(found) != 1 or str(gtids) != str(found[0]):
        raise UsageError(f"{text!r} does not name one transaction", hint=_FORMS)
    return Place(gtid=found[0])


def find(settings: SourceSettings, chain: PlanChain, text: str) -> tuple[FoundTransaction, Part]:
    """Return the transaction that a text names, and the part of the log in which it is.

    Raises:
        UsageError: the text names no transaction, or the log has no such transaction.
        LoaderError: the log cannot be read up to it.
    """
    from loader.extract.transaction_search import find_transaction  # loads the kernels of the codec

    place = parse_transaction(text)
    part = _part(settings, chain, place)
    transport = generation_transport(settings, part.generation).open()
    shift = part.generation.shift
    found = find_transaction(transport, part.log, shift, _sought(place, part.generation)) if part.log else None
    if found is None:
        raise UsageError(
            "the log has no such transaction",
            why=f"it was searched from {part.log.start} to {part.log.stop}" if part.log else "nothing new is logged",
            hint=f"{_FORMS}; list transactions with: loader inspect",
            source=settings.name,
            transaction=text,
        )
    return found, part


def _sought(place: Place, generation: Generation) -> Sought:
    from loader.extract import transaction_search as search

    if place.gtid:
        return search.with_gtid(place.gtid)
    if place.position:
        return search.at_position(place.position)
    return search.ending_at(Position.of_seqno(generation.start_position.basename, place.seqno, generation.shift))


def _part(settings: SourceSettings, chain: PlanChain, place: Place) -> Part:
    """Return the interval that has a transaction, or the log that is not staged."""
    newest = chain.require_generation()
    checkpoint = chain.newest_checkpoint(newest)
    if place.gtid:
        staged = bool(checkpoint.gtids) and not missing_gtids(str(place.gtid), checkpoint.gtids)
        return _staged_part(chain, settings, place) if staged else _unstaged_part(settings, chain, newest)
    begin = _seqno(place, newest)
    if begin is not None and begin >= checkpoint.position.seqno(newest.shift):
        return _unstaged_part(settings, chain, newest)
    return _staged_part(chain, settings, place)


def _unstaged_part(settings: SourceSettings, chain: PlanChain, generation: Generation) -> Part:
    start = chain.newest_checkpoint(generation).position
    with connected(settings.server) as connection:
        continuity.check_identity(connection, generation.identity)
        end = server_facts.log_end(connection)
    return Part(generation, Interval(start, end) if start < end else None)


def _staged_part(chain: PlanChain, settings: SourceSettings, place: Place) -> Part:
    for generation in reversed(chain.lineage(chain.require_generation().name)):
        manifest = _with_gtid(chain, generation, place.gtid) if place.gtid else _with_place(chain, generation, place)
        if manifest:
            interval = Interval(Position.parse(manifest.start), Position.parse(manifest.stop))
            return Part(generation, interval, manifest)
    raise UsageError(
        "the transaction is before the log that was read, so the initial load has its rows",
        hint="list what was read with: loader intervals",
        source=settings.name,
        transaction=place.gtid or place.position or place.seqno,
    )


def _seqno(place: Place, generation: Generation) -> int | None:
    """Return the seqno of a byte of the transaction; None if it lies in another log."""
    if place.position is None:
        return place.seqno - 1
    start = generation.start_position
    same = start.basename == place.position.basename and start <= place.position
    return place.position.seqno(generation.shift) if same else None


def _with_place(chain: PlanChain, generation: Generation, place: Place) -> Manifest | None:
    seqno = _seqno(place, generation)
    if seqno is None or not generation.start_position.seqno(generation.shift) <= seqno < chain.valid_until(generation):
        return None
    start = chain.start_at_or_before(generation.name, seqno)
    return chain.manifest(generation.name, start) if start is not None else None


def _with_gtid(chain: PlanChain, generation: Generation, gtid: Gtid) -> Manifest | None:
    """Return the manifest of the valid interval in which a transaction was read; None if it was not read there."""
    return staged_with_gtid(chain, generation, str(gtid))


def staged_with_gtid(chain: PlanChain, generation: Generation, gtid: str) -> Manifest | None:
    """Return the manifest of the staged interval of a generation that has a GTID, or None.

    The number of requests grows with the logarithm of the number of intervals.
    """
    if generation.gtids and not missing_gtids(gtid, generation.gtids):
        return None
    newest = next(chain.descending_starts(generation.name, min(chain.valid_until(generation), ENDLESS)), None)
    if newest is None:
        return None

    def has(start: int) -> bool:
        manifest = chain.extracted_manifest(generation.name, start)
        return manifest is None or (bool(manifest.gtids) and not missing_gtids(gtid, manifest.gtids))

    return chain.manifest(generation.name, _first_start(chain, generation, newest, has)) if has(newest) else None


def _first_start(chain: PlanChain, generation: Generation, last: int, has: Callable[[int], bool]) -> int:
    """Return the first start of an interval of which `has` is true, as it is of all later ones up to `last`."""
    low = generation.start_position.seqno(generation.shift)  # no earlier start has it
    while low < last:
        middle = (low + last) // 2
        starts = [start for start in chain.starts_below(generation.name, middle + 1) if start >= low]
        if not starts or not has(starts[-1]):
            low = middle + 1
        elif has(starts[0]):
            last = starts[0]
        else:
            return starts[bisect_left(starts, True, key=has)]
    return last
