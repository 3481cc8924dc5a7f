"""Whether the warehouse has a table up to a position or a time. Used by whoever waits for a table."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import cast

from loader.errors import DataError
from loader.model.table import TableName
from loader.pipeline.chain.interval_lookup import find_stop, newest_record
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.reports.commit_times import newest_commit_time
from loader.pipeline.reports.lag import source_lag
from loader.pipeline.upkeep.quarantine_release import quarantines_of
from loader.reader.seek.position_spec import Since, parse_place
from loader.settings import SourceSettings
from loader.spark.job import rebuild
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.staging.published import Published
from loader.store.registry import open_store


def has_position(settings: SourceSettings, table: TableName, position: str) -> bool:
    """Return whether all changes of a table before a position are in the warehouse.

    Args:
        settings: of the source.
        table: the table.
        position: `binlog.000054:123`, or its seqno.

    Raises:
        UsageError: the position has another form.
        DataError: the log was not read at that position, or the table is quarantined before it.
    """
    chain = chain_of(settings)
    record, goal = newest_record(chain, settings.catalog.place), find_stop(settings, position)
    applied = record.stop_seqno if record and str(table) in record.tables else 0
    if record and record.behind.get(str(table), applied) >= goal and not _is_outdated(settings, record, table, goal):
        return True
    generations = [generation.name for generation in chain.generations()]
    loaded = chain.loads.has_applied(generations, table, goal, sys.maxsize, settings.catalog.place)
    if loaded and not _is_stopped_before(settings, table, goal):
        return True
    _check_continues(settings, table)
    return False


def has_time(settings: SourceSettings, table: TableName, time: str) -> bool:
    """Return whether all changes of a table that were committed before a time are in the warehouse.

    That is known if a later transaction is in the newest applied interval. On a quiet server it is known if everything
    is applied, and the time has passed.

    Args:
        settings: of the source.
        table: the table.
        time: `2026-01-31T12:00:00Z`; UTC if it has no zone.

    Raises:
        UsageError: the time has another form.
        DataError: the table is quarantined.
        LoaderError: the server is needed to know it, and does not answer, or refuses the user.
    """
    now = time_ns() // 1000
    goal = cast("Since", parse_place(f"time:{time}")).micros
    chain = chain_of(settings)
    record = newest_record(chain, settings.catalog.place)
    if record is None or str(table) not in record.tables or _is_outdated(settings, record, table, sys.maxsize):
        _check_continues(settings, table)
        return False
    committed = newest_commit_time(chain, record)
    if committed and committed > datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=goal):
        return True
    lag = source_lag(settings)
    if lag.unreachable:
        raise rebuild(lag.unreachable)
    return now > goal and lag.behind == 0


def _is_outdated(settings: SourceSettings, record: Published, table: TableName, goal: int) -> bool:
    """Return whether a table may lack changes before the goal, although the record has it up to there.

    An initial load sets it back until the log is merged again. Or it was rolled back or dropped, and then quarantined.
    """
    loads = OvertakenLoads(open_store(settings.staging_root), settings.name).all()
    if any(load.name == table and load.seqno < goal for load in loads):
        return True
    noted, stopped = record.tables.get(str(table)), quarantines_of(settings).all().get(table)
    return noted is not None and stopped is not None and stopped.applied_seqno != noted.applied


def _is_stopped_before(settings: SourceSettings, table: TableName, goal: int) -> bool:
    """Return whether a table was quarantined before the goal: after its load, it was rolled back or dropped."""
    stopped = quarantines_of(settings).all().get(table)
    return stopped is not None and (stopped.applied_seqno or 0) < goal


def _check_continues(settings: SourceSettings, table: TableName) -> None:
    if stopped := quarantines_of(settings).all().get(table):
        raise DataError(
            "the table is quarantined, so waiting for it does not help",
            why=str(stopped.error["what"]),
            hint=str(stopped.error_with_release()["hint"]),
            source=settings.name,
            table=table,
        )
