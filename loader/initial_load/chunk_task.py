"""Reading and staging one chunk of an initial load in a Spark task."""

from __future__ import annotations

import logging
import uuid
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

from pymysql.connections import Connection

from loader.initial_load.chunks import check_offsets, chunk_conditions, chunk_query
from loader.initial_load.definition_check import definition_locked
from loader.initial_load.documents import LoadedChunk, LoadPlan
from loader.initial_load.loads import Loads
from loader.initial_load.result_set.reader import ResultReader, line_head, prepare_session
from loader.initial_load.server.read_limits import ReadLimits
from loader.initial_load.server.replica import check_reader
from loader.initial_load.server.throttle import take_reader_place, wait_for_server
from loader.staging.parts import PartWriter
from loader.store.base import Store
from loader.store.registry import open_store
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_LOG = logging.getLogger(__name__)


def load_chunk(
    server: ServerAddress,
    staging_root: str,
    plan_key: str,
    attempt: str,
    number: int,
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - it is frozen
) -> LoadedChunk:
    """Read and stage a chunk, or return the chunk that another attempt staged first. Wait before it for the server.

    Every read writes a separate file in the attempt's folder. Two reads may find different rows, and a read that was
    given up may still be running.

    Raises:
        LoaderError: from server, codec or store. No file of the chunk is visible then.
    """
    plan = _plan(staging_root, plan_key)
    with connected(server) as connection:
        check_reader(connection, plan)
        take_reader_place(connection, limits)
        wait_for_server(connection, limits)
        prepare_session(connection)
        return stage_chunk(connection, open_store(staging_root), plan, attempt, number)


def stage_chunk(connection: Connection[Any], store: Store, plan: LoadPlan, attempt: str, number: int) -> LoadedChunk:
    """Read and stage a chunk on a prepared connection. A table without a key is read in the connection's transaction.

    Raises:
        LoaderError: from server, codec or store. No file of the chunk is visible then.
    """
    part = f"{number:06d}-{uuid.uuid4().hex[:8]}"
    definition = plan.definition
    hex_fallback = plan.undecodable == "hex"
    with PartWriter(store, plan.folder, attempt, part) as writer:
        reader = ResultReader(connection, definition, line_head(plan.seqno, plan.taken_at), hex_fallback=hex_fallback)
        with definition_locked(connection, plan) if plan.key else nullcontext():
            check_offsets(connection, plan, number)
            rows = sum(
                reader.read(chunk_query(plan, condition), lambda lines: writer.write(definition, lines))
                for condition in chunk_conditions(connection, plan, number)
            )
    file = writer.staged(definition, (rows, 0, 0), (plan.seqno, plan.seqno)) if rows else None
    _LOG.debug("table %s: chunk %d has %d rows", plan.name, number, rows)
    return Loads(store, plan.source, plan.generation).finish(plan, LoadedChunk(number=number, file=file))


@lru_cache(maxsize=4)
def _plan(staging_root: str, key: str) -> LoadPlan:
    """Return a plan. It is cached, because plans never change and a plan with many chunks is slow to read."""
    return LoadPlan.read(open_store(staging_root).get(key), key)
