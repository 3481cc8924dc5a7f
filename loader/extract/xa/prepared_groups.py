"""Held groups: what the log says of XA transactions, matched up across ranges, files and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loader.binlog.events.statement import LogStatement
from loader.errors import LOAD_ALL_AGAIN, DataError
from loader.extract.xa_events import Decided, Prepared, XaEvent
from loader.reader.files.log_files import lognum_of
from loader.staging.documents import HeldGroup


class Release(NamedTuple):
    """A held group whose rows are staged now, as of its XA COMMIT."""

    file: str
    start: int
    end: int
    seqno: int
    committed: int


@dataclass(frozen=True)
class Settled:
    """How XA transactions stand at the end of an interval.

    Attributes:
        releases: committed groups that hold captured rows, in the order of the log.
        held: groups without an outcome yet, in the order of the log.
        lost: commits of groups that are in no log file at hand, in the order of the log.
    """

    releases: tuple[Release, ...]
    held: tuple[HeldGroup, ...]
    lost: tuple[Decided, ...] = ()


NO_GROUPS = Settled((), ())


def match_events(carried: Iterable[HeldGroup], events: Iterable[XaEvent]) -> Settled:
    """Match the XA events of an interval with each other and with the groups `carried` into it.

    A rollback of a group that is not known changes nothing. MariaDB also logs one for a transaction that has no rows
    left, without its XA PREPARE (MDEV-25616).

    Raises:
        DataError: a second group of an identifier that awaits its outcome.
    """
    open_groups = {group.xid: group for group in carried}
    idle = {group.xid for group in open_groups.values() if group.skipped}
    releases, lost = [], []
    for event in sorted(events, key=_place):
        if isinstance(event, Prepared):
            if event.xid in open_groups:
                raise _twice(event, open_groups[event.xid])
            open_groups[event.xid] = held_group(event)
            if event.skipped or not event.captured:
                idle.add(event.xid)
            continue
        group = open_groups.pop(event.xid, None)
        if group is None:
            lost += [event] if event.commit else []
        elif event.commit and event.xid not in idle:
            releases.append(Release(group.file, group.start, group.end, event.seqno, event.committed))
        idle.discard(event.xid)
    return Settled(
        tuple(sorted(releases, key=lambda r: (lognum_of(r.file), r.start))),
        tuple(sorted(open_groups.values(), key=lambda g: (lognum_of(g.file), g.start))),
        tuple(lost),
    )


def held_group(event: Prepared) -> HeldGroup:
    """The group, as it is held."""
    return HeldGroup(xid=event.xid, file=event.file, start=event.start, end=event.end, skipped=event.skipped)


def find_unknown_commits(carried: Iterable[HeldGroup], events: Iterable[XaEvent]) -> list[Decided]:
    """Commits of groups that were prepared before these events and are not carried."""
    known = {group.xid for group in carried}
    missing = []
    for event in sorted(events, key=_place):
        if isinstance(event, Prepared):
            known.add(event.xid)
        elif event.xid in known:
            known.discard(event.xid)
        elif event.commit:
            missing.append(event)
    return missing


def group_releases(releases: Sequence[Release], most_bytes: int, gap: int) -> Iterator[list[Release]]:
    """Releases in runs that are read together: of one file, near each other, of about `most_bytes` at most.

    A rule of the log alone, so that every attempt cuts the same runs.
    """
    run: list[Release] = []
    for release in releases:
        if run and (
            release.file != run[0].file or release.start - run[-1].end > gap or release.end - run[0].start > most_bytes
        ):
            yield run
            run = []
        run.append(release)
    if run:
        yield run


def missing_rows_error(event: Decided) -> DataError:
    """The error of a commit whose group is nowhere in the log."""
    return DataError(
        "the log holds the commit of an XA transaction, but not its rows",
        why=f"XA transaction {event.xid} was prepared before the oldest log file at hand",
        hint="read it together with older log files",
        file=event.file,
        position=event.end,
    )


def as_statement(event: Decided) -> LogStatement:
    """A commit as a statement that changed rows which the log does not have."""
    text, position = f"XA COMMIT {event.xid}", f"{event.file}:{event.end}"
    return LogStatement(event.seqno, position, "", text, 0, mariadb=False, with_rows=False)


def _place(event: XaEvent) -> tuple[int, int]:
    return lognum_of(event.file), event.end


def _twice(event: Prepared, before: HeldGroup) -> DataError:
    return DataError(
        "an XA transaction is prepared twice without an outcome between",
        why=f"XA transaction {event.xid} was also prepared at {before.file}:{before.start}",
        hint=f"the log is not what a server writes; {LOAD_ALL_AGAIN}",
        file=event.file,
        position=event.start,
    )
