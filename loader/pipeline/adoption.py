"""Adoption: warehouse tables that were loaded by other means as of a known position then follow the log.

An adopted table has an initial load without files, so that all other parts treat it like a loaded table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from pymysql.connections import Connection

from loader import __version__
from loader.errors import UnsupportedError, UsageError
from loader.initial_load.documents import LoadPlan
from loader.initial_load.load_planner import plan_single_chunk
from loader.initial_load.loads import Loads, manifest_key
from loader.initial_load.run import captured_tables
from loader.initial_load.server.consistent_snapshot import read_engine
from loader.materialise.load.load_notes import note_loaded
from loader.materialise.rules import rule_of
from loader.model.position import Interval, Position
from loader.model.table import TableName
from loader.pipeline.chain.chain_begin import begin, begin_at, check_server
from loader.pipeline.chain.failover import check_start, log_checkpoint, set_until
from loader.pipeline.chain.log_lookup import find_log_position
from loader.pipeline.chain.plan_chain import chain_of
from loader.pipeline.jobs import initial_load_spec
from loader.reader.seek.position_spec import After, Since, parse_place
from loader.settings import SourceSettings
from loader.source.digest import definition_digest
from loader.source.loadable import check_loadable
from loader.source.schemas import read_schemas
from loader.staging.chain import PlanChain
from loader.staging.documents import Generation, Manifest
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.store.registry import open_store
from loader.transport.server.connection import connected
from loader.verify.comparable import check_engine, check_mode


class Adoption(NamedTuple):
    """The loads as which tables are adopted, and the position up to which the tables may have later changes."""

    plans: Sequence[LoadPlan]
    exact_at: Position


def plan_adoption(settings: SourceSettings, tables: tuple[str, ...], at: str, *, compared: bool = False) -> Adoption:
    """Return the loads as which the tables are adopted. If the source's chain has not begun, it begins at the place.

    Args:
        settings: of the source.
        tables: names as `schema.table`.
        at: where the tables are exact; see `find_log_position`.
        compared: refuse tables whose rows cannot be compared with the source afterwards.

    Raises:
        UsageError: the place is a time, the source has no such captured table, its chain or a load of a table begins
            after the place, or the rows of a table cannot be compared.
        GapError: the log of the source does not continue its chain.
        UnsupportedError: a table cannot be captured. Or it has some changes after the place, and it is a history or has
            no key.
        LoaderError: the server cannot be read, or its log does not have the place.
    """
    if isinstance(parse_place(at), Since):
        raise _time_error(at)
    with connected(settings.server) as connection:  # before the chain begins, which is for good
        for table in captured_tables(connection, settings.tables, tables):
            check_loadable(connection, read_schemas(connection, [table])[0])
            if compared:
                _check_comparable(connection, settings, table)
    # If the source is another server than before, its positions are of the generation that continues there.
    generation = begin(settings) if chain_of(settings).generation() else begin_at(settings, at)
    position = find_log_position(settings, at)
    if position < generation.start_position:
        raise _too_early_error(generation, position)
    exact_at = _exact_at(settings, generation, at, position)
    spec = initial_load_spec(settings, generation, tables)
    plans = []
    with connected(settings.server) as connection:
        for table in captured_tables(connection, settings.tables, tables):
            (schema,) = read_schemas(connection, [table])
            _check_newest(settings, generation, table, position)
            history = spec.is_history(table)
            if exact_at > position and (history or not schema.key):
                raise _repeated_error(table, position, exact_at, history=history)
            plans.append(plan_single_chunk(connection, spec, schema, position, definition_digest(connection, table)))
    return Adoption(plans, exact_at)


def _exact_at(settings: SourceSettings, generation: Generation, at: str, position: Position) -> Position:
    """Return the position up to which the log has transactions of a GTID set, between others that the set lacks.

    Raises:
        UsageError: the chain begins after another set, and skips transactions of that set after the position. Or
            transactions without a GTID are before the position.
    """
    place = parse_place(at)
    gtids = str(place.gtids) if isinstance(place, After) else ""
    if gtids and (generation.start, generation.gtids) == (str(position), gtids):
        return position  # the chain skips the transactions of the set
    if generation.known_until and position < Position.parse(generation.known_until):
        raise _skipped_error(generation, position)
    if not gtids:
        return position
    check_start(settings, gtids, position)
    end = check_server(settings)[1]
    if position >= end:
        return position
    until = set_until(settings, Interval(position, end), log_checkpoint(settings, position).gtids, gtids)
    return Position.parse(until) if until else position


def record_adoption(settings: SourceSettings, adoption: Adoption, result: dict[str, Any]) -> None:
    """Store the loads of the tables that the job has adopted, now or in an earlier run.

    The adopted position may be before that of the newest published record. Then the log is merged again from there.
    """
    adopted = {table["table"] for table in result["tables"] if not table["error"]}
    store = open_store(settings.staging_root)
    newest = PlanChain(store, settings.name).newest_published(adoption.plans[0].generation) if adopted else None
    for plan in adoption.plans:
        if str(plan.name) in adopted:
            loads = Loads(store, settings.name, plan.generation)
            begun = loads.begin(plan)
            loads.publish(begun, _manifest(plan, adoption.exact_at))
            key = manifest_key(begun)
            if newest and plan.seqno < newest[1].stop_seqno and str(plan.name) in newest[1].tables:
                OvertakenLoads(store, settings.name).begin(plan.name, key, plan.seqno)
            note_loaded(store, settings.name, settings.catalog, str(plan.name), plan.position, key)


def _manifest(plan: LoadPlan, exact_at: Position) -> Manifest:
    return Manifest(
        source=plan.source,
        generation=plan.generation,
        identity=plan.identity,
        start=plan.position,
        stop=plan.position,
        start_seqno=plan.seqno,
        stop_seqno=plan.seqno,
        files=(),
        schemas={plan.definition.schema_id: plan.definition.as_dict()},
        exact_at=str(exact_at),
        exact_at_seqno=exact_at.seqno(plan.shift),
        unlogged=plan.unlogged,
        adopted=True,
        loader_version=__version__,
    )


def _check_newest(settings: SourceSettings, generation: Generation, table: TableName, position: Position) -> None:
    """Check that no initial load or adoption of the table is after a position.

    A merge does not begin before a load, because the log before the load may lack changes of the table.
    """
    loads = chain_of(settings).loads
    after = position.seqno(generation.shift) + 1
    if loads.has_applied([generation.name], table, after, sys.maxsize, settings.catalog.place):
        newest = loads.newest_applied(generation.name, table, sys.maxsize)
        raise UsageError(
            "the table has an initial load or an adoption after this place",
            why=f"its newest one is at {newest.start if newest else 'another place'}, so the table cannot follow the"
            f" log from {position} on",
            hint=f"copy the table again, as of a later place, and adopt it there; or {table.load_again}",
            table=table,
        )


def _check_comparable(connection: Connection[Any], settings: SourceSettings, table: TableName) -> None:
    try:
        check_mode(rule_of(settings.rules, table), table)
        check_engine(read_engine(connection, table), table)
    except UnsupportedError as error:
        raise UsageError(
            "the rows of the table cannot be compared with the source",
            why=error.what,
            hint=f"to adopt it nevertheless: loader adopt --table {table.argument} --at PLACE --compare none",
            table=table,
        ) from error


def _repeated_error(table: TableName, position: Position, until: Position, *, history: bool) -> UnsupportedError:
    what, twice = ("a history", "Its changes") if history else ("a table without a primary key", "Rows without a key")
    other = "give a position at which the table is exact"
    return UnsupportedError(
        f"{what} cannot be adopted after this GTID set",
        why=f"transactions of the set are in the log between {position} and {until}, with others that it lacks."
        f" {twice} would be inserted twice",
        hint=other if history else f"add a primary key; or {other}",
        table=table,
    )


def _skipped_error(generation: Generation, position: Position) -> UsageError:
    return UsageError(
        f"the log after {position} is staged without some transactions, which the table may lack",
        why=f"up to {generation.known_until}, transactions of the GTID set {generation.gtids} are skipped",
        hint=f"give that set, or a position from {generation.known_until} on, at which the tables are exact",
        source=generation.source,
    )


def _time_error(at: str) -> UsageError:
    return UsageError(
        f"a table cannot be adopted as of a time, such as {at}",
        why="the log does not tell exactly when a change was committed: MariaDB logs the time at which its statement"
        " began, and a replica may have the times of its primary",
        hint="give the position or the GTID set of the dump",
    )


def _too_early_error(generation: Generation, position: Position) -> UsageError:
    return UsageError(
        f"the log of the source is read from {generation.start} on, which is after {position}",
        why="changes in between are not staged",
        hint=f"give a position from {generation.start} on, at which the tables are exact",
        source=generation.source,
    )
