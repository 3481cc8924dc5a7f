"""Global transaction identifiers and sets of them, in MySQL's form and in MariaDB's.

Formats: the MySQL manual, "GTID Format and Storage" (tags since 8.3); the MariaDB manual, "Global Transaction ID". A
MySQL set has ranges of numbers per source. A MariaDB set has all transactions of each replication domain up to a
sequence number.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from loader.errors import DataError, UsageError

Ranges = tuple[tuple[int, int], ...]

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_DASHED = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_MARIADB = re.compile(r"(\d+)-(\d+)-(\d+)")
_MOST = 2**63 - 2  # the largest number of a MySQL GTID
_HINT = "write it like 3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5:7, or 0-1-100 of a MariaDB server"


@dataclass(frozen=True)
class MysqlGtid:
    """`uuid:number` or `uuid:tag:number`; `source` is the part before the number."""

    source: str
    number: int

    def __str__(self) -> str:
        return f"{self.source}:{self.number}"


@dataclass(frozen=True)
class MariadbGtid:
    """`domain-server-sequence`."""

    domain: int
    server: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


Gtid = MysqlGtid | MariadbGtid


@dataclass(frozen=True)
class MysqlGtidSet:
    """Ranges of numbers by `uuid` or `uuid:tag`: inclusive, sorted, neither overlapping nor adjacent."""

    ranges: dict[str, Ranges] = field(default_factory=dict)

    def __contains__(self, gtid: object) -> bool:
        if not isinstance(gtid, MysqlGtid):
            return False
        ranges = self.ranges.get(gtid.source, ())
        at = bisect_right(ranges, gtid.number, key=lambda one: one[0])
        return at > 0 and gtid.number <= ranges[at - 1][1]

    def without(self, other: MysqlGtidSet) -> MysqlGtidSet:
        """Return the GTIDs of this set that the other lacks."""
        left = {source: tuple(_minus(mine, other.ranges.get(source, ()))) for source, mine in self.ranges.items()}
        return MysqlGtidSet({source: ranges for source, ranges in left.items() if ranges})

    def __or__(self, other: MysqlGtidSet) -> MysqlGtidSet:
        sources = (*self.ranges.items(), *other.ranges.items())
        return mysql_set((source, first, last) for source, ranges in sources for first, last in ranges)

    def __le__(self, other: MysqlGtidSet) -> bool:
        return not self.without(other).ranges

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.ranges.items())))

    def __str__(self) -> str:
        """Return the server's text: sources in order, the tags of a source after its untagged ranges."""
        found: dict[str, str] = {}
        for source in sorted(self.ranges):
            uuid, _, tag = source.partition(":")
            listed = "".join(f":{a}-{b}" if a != b else f":{a}" for a, b in self.ranges[source])
            found[uuid] = found.get(uuid, uuid) + (f":{tag}" if tag else "") + listed
        return ",".join(found.values())


@dataclass(frozen=True)
class MariadbGtidSet:
    """The newest transaction of each replication domain. All earlier ones of the domain are also in the set."""

    newest: dict[int, MariadbGtid] = field(default_factory=dict)

    def __contains__(self, gtid: object) -> bool:
        if not isinstance(gtid, MariadbGtid):
            return False
        found = self.newest.get(gtid.domain)
        return found is not None and gtid.sequence <= found.sequence

    def without(self, other: MariadbGtidSet) -> MariadbGtidSet:
        """Return the domains in which this set is ahead of the other."""
        return MariadbGtidSet({domain: gtid for domain, gtid in self.newest.items() if gtid not in other})

    def __or__(self, other: MariadbGtidSet) -> MariadbGtidSet:
        return mariadb_set((*self.newest.values(), *other.newest.values()))

    def __le__(self, other: MariadbGtidSet) -> bool:
        return not self.without(other).newest

    def __hash__(self) -> int:
        return hash(tuple(sorted((g.domain, g.server, g.sequence) for g in self.newest.values())))

    def __str__(self) -> str:
        return ",".join(str(self.newest[domain]) for domain in sorted(self.newest))


GtidSet = MysqlGtidSet | MariadbGtidSet


def union_gtids(text: str, more: GtidSet) -> GtidSet:
    """Return the union of a set's text and another set. An empty text fits both formats.

    Raises:
        DataError: one set is of MySQL and the other of MariaDB.
    """
    known = parse_gtid_set(text) if text else type(more)()
    if isinstance(known, MysqlGtidSet) and isinstance(more, MysqlGtidSet):
        return known | more
    if isinstance(known, MariadbGtidSet) and isinstance(more, MariadbGtidSet):
        return known | more
    raise DataError("GTIDs of MySQL and of MariaDB cannot be in one set", first=known, second=more)


def missing_gtids(wanted: str, known: str) -> str:
    """Return the GTIDs in `wanted` that `known` lacks, as text; empty if it has all of them.

    Raises:
        DataError: one set is of MySQL and the other of MariaDB.
    """
    if not wanted:
        return ""
    whole = parse_gtid_set(wanted)
    other = union_gtids(known, type(whole)())
    if isinstance(whole, MariadbGtidSet) and isinstance(other, MariadbGtidSet):
        return str(whole.without(other))
    if isinstance(whole, MysqlGtidSet) and isinstance(other, MysqlGtidSet):
        return str(whole.without(other))
    raise AssertionError("union_gtids gives a set of its second argument's form")


def mysql_set(parts: Iterable[tuple[str, int, int]]) -> MysqlGtidSet:
    """Return the set of ranges (source, first, last), which may be unsorted and overlap."""
    found: dict[str, list[tuple[int, int]]] = {}
    for source, first, last in parts:
        found.setdefault(source, []).append((first, last))
    return MysqlGtidSet({source: _merged(ranges) for source, ranges in found.items()})


def mariadb_set(gtids: Iterable[MariadbGtid]) -> MariadbGtidSet:
    """Return the set up to the newest GTID of each domain."""
    newest: dict[int, MariadbGtid] = {}
    for gtid in gtids:
        if gtid.domain not in newest or newest[gtid.domain].sequence < gtid.sequence:
            newest[gtid.domain] = gtid
    return MariadbGtidSet(newest)


def parse_gtid_set(text: str) -> GtidSet:
    """Parse a set of either server; white space and case do not matter.

    Raises:
        UsageError: the text is not a GTID set.
    """
    entries = [entry for entry in "".join(text.split()).lower().split(",") if entry]
    if entries and all(_MARIADB.fullmatch(entry) for entry in entries):
        return mariadb_set(MariadbGtid(*(int(part) for part in entry.split("-"))) for entry in entries)
    return mysql_set(part for entry in entries for part in _entry(entry, text))


def parse_owned_gtids(text: str) -> dict[MysqlGtid, int]:
    """Parse MySQL's `@@global.gtid_owned`: the id of the thread that owns each GTID.

    The text is `uuid:number#thread:number#thread`; a tag precedes its numbers. The server
    (`Owned_gtids::to_string`) writes the next UUID directly after the thread, without a separator.

    Raises:
        DataError: the text has another format.
    """
    before, *pairs = _DASHED.split(re.sub(r"[\s,]", "", text.lower()))
    if before:
        raise _not_owned(text)
    found: dict[MysqlGtid, int] = {}
    for uuid, parts in zip(pairs[::2], pairs[1::2], strict=True):
        found |= _owned(uuid, parts, text)
    return found


def source_of(uuid: bytes, tag: str = "") -> str:
    """Return the `uuid` or `uuid:tag` of 16 bytes of the log."""
    text = uuid.hex()
    dashed = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return f"{dashed}:{tag}" if tag else dashed


def _entry(entry: str, text: str) -> Iterator[tuple[str, int, int]]:
    """Parse `uuid:1-5:7:tag:1-3`: a tag applies to the ranges after it."""
    uuid, *parts = entry.split(":")
    if not _UUID.fullmatch(uuid) or not parts or not _RANGE.fullmatch(parts[-1]):
        raise UsageError(f"{text!r} is not a GTID set", hint=_HINT)
    tag = ""
    for part in parts:
        if found := _RANGE.fullmatch(part):
            first, last = int(found[1]), int(found[2] or found[1])
            if not 1 <= first <= last <= _MOST:
                raise UsageError(f"{text!r} is not a GTID set", why=f"{part} is not a range of numbers", hint=_HINT)
            yield source_of(bytes.fromhex(uuid.replace("-", "")), tag), first, last
        elif _TAG.fullmatch(part):
            tag = part
        else:
            raise UsageError(f"{text!r} is not a GTID set", why=f"{part} is neither a range nor a tag", hint=_HINT)


def _owned(uuid: str, parts: str, text: str) -> dict[MysqlGtid, int]:
    """Parse `:1#7:tag:2#8`: a tag applies to the numbers after it."""
    before, *listed = parts.split(":")
    if before or not listed:
        raise _not_owned(text)
    source, found = uuid, {}
    for part in listed:
        if owner := re.fullmatch(r"(\d+)#(\d+)", part):
            found[MysqlGtid(source, int(owner[1]))] = int(owner[2])
        elif _TAG.fullmatch(part):
            source = f"{uuid}:{part}"
        else:
            raise _not_owned(text)
    return found


def _not_owned(text: str) -> DataError:
    return DataError(
        "@@global.gtid_owned has an unknown format",
        why=f"it is {text!r}, not uuid:number#thread",
        hint="report this text with the server's version",
    )


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _minus(mine: Ranges, other: Ranges) -> Iterator[tuple[int, int]]:
    for whole_first, last in mine:
        first = whole_first
        for start, end in other:
            if end < first or start > last:
                continue
            if first < start:
                yield first, start - 1
            first = end + 1
        if first <= last:
            yield first, last
