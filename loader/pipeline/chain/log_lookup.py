"""Positions of a source's log as people name them: a position, a time, a GTID set, `begin` or `end`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loader.errors import UsageError
from loader.model.gtid import GtidSet, missing_gtids, parse_gtid_set
from loader.model.position import SEQNO_UNIT, Position
from loader.pipeline.chain.plan_chain import chain_of
from loader.reader.seek.position_spec import After, At, parse_place
from loader.settings import SourceSettings
from loader.source.continuity import check_not_purged, executed_gtids
from loader.transport.server.connection import connected

if TYPE_CHECKING:
    from loader.reader.files.log_files import LogFiles


def find_log_position(settings: SourceSettings, text: str) -> Position:
    """Return the transaction boundary that a text names; see loader.reader.seek.position_spec for its forms.

    A time means the first transaction committed then or later. A GTID set means the first transaction outside of it. A
    seqno is one of the source's chain, if the chain has begun.

    Raises:
        UsageError: the text names nothing, a position inside a transaction or outside of the log, a time to come, or
            transactions that the server lacks.
        GapError: the log lacks the transactions outside the GTID set.
        LoaderError: the log cannot be read.
    """
    # Not at the top: the search loads the kernels of the codec.
    from loader.reader.seek.seek import Locator

    place = parse_place(text)
    if isinstance(place, At) and text.isdigit():
        place = _unshift(settings, place)
    if isinstance(place, After):
        _check_executed(settings, place.gtids)
    found = Locator(_files(settings)).find(place)
    if found is None:
        raise UsageError(f"{text} is in the future", hint="give an earlier time, or: end", source=settings.name)
    return found


def _unshift(settings: SourceSettings, place: At) -> At:
    """Return where a seqno of the chain, given as the place with its numbers, is in the log that is read now.

    Raises:
        UsageError: it is in the log of an earlier generation.
    """
    generation = chain_of(settings).generation()
    if generation is None or not generation.shift:
        return place
    seqno = place.lognum * SEQNO_UNIT + place.logpos
    if seqno < generation.start_position.seqno(generation.shift):
        raise UsageError(
            f"seqno {seqno} is in a log that is no longer read",
            why="reading began again elsewhere since, after a failover or a load of all tables",
            hint=f"give a place from {generation.start} on",
            source=settings.name,
        )
    return replace(place, lognum=place.lognum - generation.shift)


def _check_executed(settings: SourceSettings, gtids: GtidSet) -> None:
    """Check that the server has all transactions of a set, which would follow after the place, and has all others.

    Raises:
        UsageError: it lacks some of the set.
        LogPurged: it has purged some others. MariaDB finds that out when it is asked for the place.
    """
    with connected(settings.server) as connection:
        executed = executed_gtids(connection)
        if executed and type(parse_gtid_set(executed)) is not type(gtids):
            return  # the search refuses a set of another kind of server
        check_not_purged(connection, str(gtids))
    missing = missing_gtids(str(gtids), executed)
    if missing:
        raise UsageError(
            "the server does not have all transactions of the GTID set",
            why=f"it lacks {missing}",
            hint="wait for them if the server is a replica; or give a set of this server:"
            " SELECT @@global.gtid_executed (MariaDB: @@global.gtid_binlog_pos)",
            source=settings.name,
        )


def _files(settings: SourceSettings) -> LogFiles:
    if settings.transport.kind == "file":
        return settings.transport.files()
    from loader.reader.locations.server import ServerFiles

    return ServerFiles(settings.server)
