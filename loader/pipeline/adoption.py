"""Adoption: warehouse tables that were loaded by other means as of a known position then follow the log.

An adopted table has an initial load without files, so that all other parts treat it like a loaded table.
"""

from __future__ import annotations

from typing import Any

from loader import __version__
from loader.errors import UsageError
from loader.initial_load.documents import LoadPlan
from loader.initial_load.keys import refuse_inexact
from loader.initial_load.load_planner import plan_single_chunk
from loader.initial_load.loads import Loads
from loader.initial_load.run import captured_tables
from loader.model.position import Position
from loader.pipeline.chain.chain_begin import begin_at, chain_of
from loader.pipeline.chain.log_lookup import find_log_position
from loader.pipeline.jobs import initial_load_spec
from loader.settings import SourceSettings
from loader.source.digest import definition_digest
from loader.source.schemas import read_schemas
from loader.staging.documents import Generation, Manifest
from loader.store.registry import open_store
from loader.transport.server.connection import connected


def plan_adoption(settings: SourceSettings, tables: tuple[str, ...], at: str) -> list[LoadPlan]:
    """Return the loads as which the tables are adopted. If the source's chain has not begun, it begins at the place.

    Args:
        settings: of the source.
        tables: names as `schema.table`.
        at: where the tables are exact; see `find_log_position`.

    Raises:
        UsageError: the source has no such captured table, or its chain begins after the place.
        UnsupportedError: a table cannot be captured.
        LoaderError: the server cannot be read, or its log does not have the place.
    """
    generation = chain_of(settings).generation() or begin_at(settings, at)
    position = find_log_position(settings, at)
    if position < generation.start_position:
        raise _too_early_error(generation, position)
    spec = initial_load_spec(settings, generation, tables)
    plans = []
    with connected(settings.server) as connection:
        for table in captured_tables(connection, settings.tables, tables):
            (schema,) = read_schemas(connection, [table])
            refuse_inexact(table, [schema.column(name) for name in schema.key])
            plans.append(plan_single_chunk(connection, spec, schema, position, definition_digest(connection, table)))
    return plans


def record_adoption(settings: SourceSettings, plans: list[LoadPlan], result: dict[str, Any]) -> None:
    """Store the loads of the tables that the job has adopted, now or in an earlier run."""
    adopted = {table["table"] for table in result["tables"] if not table["error"]}
    for plan in plans:
        if str(plan.name) in adopted:
            loads = Loads(open_store(settings.staging_root), settings.name, plan.generation)
            loads.publish(loads.begin(plan), _manifest(plan))


def _manifest(plan: LoadPlan) -> Manifest:
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
        exact_at=plan.position,
        exact_at_seqno=plan.seqno,
        unlogged=plan.unlogged,
        adopted=True,
        loader_version=__version__,
    )


def _too_early_error(generation: Generation, position: Position) -> UsageError:
    return UsageError(
        f"the log of the source is read from {generation.start} on, which is after {position}",
        why="changes in between are not staged",
        hint=f"give a position from {generation.start} on, at which the tables are exact",
        source=generation.source,
    )
