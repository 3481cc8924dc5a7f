"""The initial load of a table in one consistent snapshot, whose position is that of the load.

Rows without a key cannot be told apart, and a history has each change once. So no change may be in both the load and
the log after it. The load contains exactly the changes up to its position. It runs in one Spark task, because a
snapshot belongs to its connection.
"""

from __future__ import annotations

from contextlib import ExitStack

from loader.errors import RetryableError
from loader.initial_load.chunk_task import stage_chunk
from loader.initial_load.definition_check import altered_error, lock_definition
from loader.initial_load.load_planner import plan_single_chunk
from loader.initial_load.loads import Loads, plan_key
from loader.initial_load.result_set.reader import prepare_session
from loader.initial_load.server.consistent_snapshot import check_engine, open_snapshot
from loader.initial_load.server.throttle import take_reader_place, wait_for_server
from loader.initial_load.spec import InitialLoadSpec
from loader.model.table import TableName
from loader.source.continuity import check_identity
from loader.source.digest import definition_digest
from loader.source.loadable import check_loadable
from loader.source.schemas import read_schemas
from loader.source.server_facts import log_end
from loader.store.registry import open_store
from loader.transport.server.connection import connected


def load_whole_table(spec: InitialLoadSpec, table: TableName, attempt: str) -> str:
    """Stage the table as the only chunk of a load, and return the key of its plan.

    Raises:
        UnsupportedError: the table's engine has no consistent snapshots, or a column type is not supported.
        RetryableError: no snapshot of a known position could be opened, or the table was altered.
    """
    store = open_store(spec.staging_root)
    loads = Loads(store, spec.source, spec.generation)
    with ExitStack() as connections:
        asking = connections.enter_context(connected(spec.server))
        check_identity(asking, spec.identity)
        check_engine(asking, table)
        take_reader_place(asking, spec.limits)
        wait_for_server(asking, spec.limits)
        digest = definition_digest(asking, table)
        reading = connections.enter_context(connected(spec.server))
        check_identity(reading, spec.identity)  # an address can lead to several servers
        prepare_session(reading)
        position = open_snapshot(reading)
        # From here on nobody can alter the table. If its rows were rewritten since the snapshot, the server refuses to
        # read it. If only its definition changed, the server does not refuse, so the digest is compared.
        lock_definition(reading, table)
        if definition_digest(asking, table) != digest:
            raise altered_error(table)
        schema = read_schemas(asking, [table])[0]
        if schema.key and not spec.is_history(table):
            raise RetryableError("the table got a key during its initial load", hint="run again", table=table)
        check_loadable(asking, schema)
        own = plan_single_chunk(asking, spec, schema, position, digest)
        own = own.model_copy(update={"locked_at": str(log_end(asking))})
        # Another attempt at the same position saw the same rows, so its plan is equivalent.
        plan = loads.begin(own)
        if plan.locked_at != own.locked_at:
            raise RetryableError(
                "the log grew between the snapshot of the table and its lock",
                why="an unfinished load at the same position locked it earlier",
                hint="run again",
                table=table,
                position=plan.position,
            )
        stage_chunk(reading, store, plan, attempt, 0)
    return plan_key(plan)
