"""Held groups: XA events of the log, matched across ranges, files and intervals."""

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
    """A held group whose rows are staged now, with the seqno and commit time of its XA COMMIT."""

    file: str
    start: int
    end: int
    seqno: int
    committed: int


@dataclass(frozen=True)
class Settled:
    """The state of XA transactions at the end of an interval.

    Attributes:
        releases: committed groups with captured rows, in log order.
        held: groups without an outcome, in log order.
        lost: commits of groups that are in no available log file, and rollbacks after a commit, each in log order.
    """

    releases: tuple[Release, ...]
    held: tuple[HeldGroup, ...]
    lost: tuple[Decided, ...] = ()


NO_GROUPS = Settled((), ())


def match_events(carried: Iterable[HeldGroup], events: Iterable[XaEvent]) -> Settled:
    """Match the XA events of an interval with each other and with the groups carried over from earlier intervals.

    A rollback of an unknown group changes nothing. MariaDB also logs one for a transaction without remaining rows,
    without its XA PREPARE (MDEV-25616).

    Raises:
        DataError: a second group with the same identifier is prepared before the first has an outcome.
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
    """Return the held group of a prepare event."""
    return HeldGroup(xid=event.xid, file=event.file, start=event.start, end=event.end, skipped=event.skipped)


def find_unknown_commits(carried: Iterable[HeldGroup], events: Iterable[XaEvent]) -> list[Decided]:
    """Return commits of groups that were prepared before these events and are not carried over."""
    return [event for event, _ in _unknown(carried, events) if event.commit]


def find_unknown_rollbacks(
    carried: Iterable[HeldGroup], events: Iterable[XaEvent]
) -> list[tuple[Decided, Decided | None]]:
    """Return rollbacks of groups that are not prepared, each with the event among these that decided it before."""
    return [(event, before) for event, before in _unknown(carried, events) if not event.commit]


def _unknown(carried: Iterable[HeldGroup], events: Iterable[XaEvent]) -> Iterator[tuple[Decided, Decided | None]]:
    known, decided = {group.xid for group in carried}, dict[str, Decided]()
    for event in sorted(events, key=_place):
        if isinstance(event, Prepared):
            known.add(event.xid)
            continue
        if event.xid not in known:
            yield event, decided.get(event.xid)
        known.discard(event.xid)
        decided[event.xid] = event


def is_undone(commit: XaEvent | None, rollback: Decided) -> bool:
    """Return whether a rollback follows the commit of the same group in an earlier log file.

    MariaDB logs XA COMMIT before it commits in the engine. After a crash in between, the group is prepared again. The
    server begins another file, and somebody can roll the group back (seen on 10.11).
    """
    return isinstance(commit, Decided) and commit.commit and lognum_of(commit.file) < lognum_of(rollback.file)


def group_releases(releases: Sequence[Release], most_bytes: int, gap: int) -> Iterator[list[Release]]:
    """Yield releases in runs that are read together: of one file, close to each other, of at most about `most_bytes`.

    The runs depend on the log alone, so every attempt makes the same runs.
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
    """Return the error of a commit whose group is in no log file."""
    return DataError(
        "the log contains the commit of an XA transaction, but not its rows",
        why=f"XA transaction {event.xid} was prepared before the oldest available log file",
        hint="include older log files",
        file=event.file,
        position=event.end,
    )


def as_statement(event: Decided) -> LogStatement:
    """Return a decision as a statement that changed rows without row events in the log."""
    text, position = f"XA {'COMMIT' if event.commit else 'ROLLBACK'} {event.xid}", f"{event.file}:{event.end}"
    return LogStatement(event.seqno, position, "", text, 0, mariadb=False, with_rows=False)


def _place(event: XaEvent) -> tuple[int, int]:
    return lognum_of(event.file), event.end


def _twice(event: Prepared, before: HeldGroup) -> DataError:
    return DataError(
        "an XA transaction is prepared twice without a commit or rollback in between",
        why=f"XA transaction {event.xid} was also prepared at {before.file}:{before.start}",
        hint=f"no server writes such a log; {LOAD_ALL_AGAIN}",
        file=event.file,
        position=event.start,
    )
