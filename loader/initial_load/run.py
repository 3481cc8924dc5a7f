"""The initial load of all tables of a run: plan each table, read its chunks, publish its manifest."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from typing import Any, Literal

from pymysql.connections import Connection

from loader import __version__
from loader.errors import LOAD_ALL_AGAIN, DataError, GapError, LoaderError, RetryableError, UsageError
from loader.initial_load.definition_check import check_unaltered, is_altered
from loader.initial_load.documents import LoadedChunk, LoadPlan
from loader.initial_load.load_planner import can_resume, plan_load
from loader.initial_load.loads import NEEDS_NEW_POSITION, Loads, manifest_key, plan_key
from loader.initial_load.server.read_limits import ReadLimits
from loader.initial_load.server.replica import wait_for_reader, wait_until_logged
from loader.initial_load.server.server_outages import ServerOutages
from loader.initial_load.spec import InitialLoadResult, InitialLoadSpec, TableLoad
from loader.model.position import Position
from loader.model.table import TableName
from loader.source.continuity import check_identity
from loader.source.schemas import find_tables, read_key
from loader.source.server_facts import log_end
from loader.spark.job import failure
from loader.spark.progress import Progress, TableCount
from loader.spark.workers import Workers
from loader.staging.documents import Manifest, TableFilter
from loader.staging.filters import CapturedTables
from loader.staging.notes.refusals import note_refusal
from loader.store.registry import open_store
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected

_LOG = logging.getLogger(__name__)
_PLANS = 3  # plans of one table in one run
_AT_ONCE = 3  # tables at once: while one is planned, the chunks of others are read
_REPORT_SECONDS = 2


def stage_tables(
    workers: Workers, spec: InitialLoadSpec, staged: Callable[[TableLoad], object] = lambda _: None
) -> InitialLoadResult:
    """Stage the initial load of every table. A table that fails is reported and does not stop the others.

    Args:
        workers: what reads the chunks. `limits.readers` of the spec bounds all tables together.
        spec: the tables.
        staged: called for each table when its manifest is published, from several threads.

    Raises:
        LoaderError: no load could be started.
    """
    tables = _tables(spec)
    _LOG.info("%d tables to load", len(tables))
    servers = [spec.server, *([spec.read_from] if spec.read_from else [])]
    count, outages = TableCount(len(tables)), ServerOutages(servers)
    readers = workers.limited(spec.limits.readers) if spec.limits.readers else workers

    def stage_one(table: TableName) -> TableLoad:
        result = _guarded(readers, spec, table, outages)
        count.add(result.rows)
        if result.manifest:
            staged(result)
        return result

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = list(pool.map(stage_one, tables))
    return InitialLoadResult(only=spec.only, tables=tuple(done))


def find_staged_loads(spec: InitialLoadSpec) -> InitialLoadResult | None:
    """Return the staged loads of all requested tables, or None if a table has yet to be read. Needs no Spark.

    Raises:
        LoaderError: the server does not answer, or a requested table does not exist.
    """
    if spec.not_before:
        return None
    loads = Loads(open_store(spec.staging_root), spec.source, spec.generation)
    found = []
    for table in _tables(spec):
        plan = loads.newest(table, 0) or loads.newest_followed(table)
        manifest = loads.manifest(plan) if plan else None
        if plan is None or manifest is None or _repeats_changes(loads, spec, plan, manifest):
            return None
        found.append(_result(plan, manifest, "already"))
    return InitialLoadResult(only=spec.only, tables=tuple(found))


def _tables(spec: InitialLoadSpec) -> list[TableName]:
    with connected(spec.server) as connection:
        check_identity(connection, spec.identity)
        return captured_tables(connection, spec.tables, spec.only)


def captured_tables(connection: Connection[Any], captured: TableFilter, only: Sequence[str]) -> list[TableName]:
    """Return the captured tables of the server, or only those with these names.

    Raises:
        UsageError: a named table does not exist or is not captured.
    """
    found = find_tables(connection, CapturedTables(captured))
    if not only:
        return found
    by_name = {str(table): table for table in found}
    for name in only:
        if name not in by_name:
            raise UsageError(
                "the source has no such captured table, or the user may not see it",
                hint="if it was dropped or renamed on the server: loader run; if the run does not get past it, because"
                f" the table was not captured then: {TableName.parse(name).exclusion}; otherwise, check the name, its"
                " case, the tables in the configuration and the SELECT privilege",
                table=name,
            )
    return [by_name[name] for name in dict.fromkeys(only)]


def _guarded(workers: Workers, spec: InitialLoadSpec, table: TableName, outages: ServerOutages) -> TableLoad:
    began = time.monotonic()
    try:
        result = outages.call(f"table {table}", lambda: _load(workers, spec, table))
    except Exception as error:  # a failed table must not stop the others
        _LOG.error("table %s failed", table, exc_info=error)
        told = failure(error)
        if told["exit_code"] == DataError.exit_code:
            note_refusal(open_store(spec.staging_root), spec.source, table, told)
        result = TableLoad(table=str(table), status="failed", error=told)
    return result.model_copy(update={"seconds": round(time.monotonic() - began, 3)})


def _load(workers: Workers, spec: InitialLoadSpec, table: TableName) -> TableLoad:
    loads = Loads(open_store(spec.staging_root), spec.source, spec.generation)
    for _ in range(_PLANS):
        plan = _plan(loads, spec, table) or _read_whole(workers, spec, loads, table)
        if published := loads.manifest(plan):
            return _result(plan, published, "already")
        try:
            return _stage(workers, spec, loads, plan)
        except Exception as error:
            if not _altered(spec.server, plan):
                raise
            _LOG.warning("table %s was altered during its initial load, which is planned again", table, exc_info=error)
    raise RetryableError(
        f"the table was altered during each of {_PLANS} attempts of its initial load",
        hint="run again when no statement alters the table",
        table=table,
    )


def _altered(server: ServerAddress, plan: LoadPlan) -> bool:
    """Return whether a load failed because its table was altered; False if the server cannot be asked."""
    try:
        with connected(server) as connection:
            return bool(plan.key) and is_altered(connection, plan)
    except LoaderError:
        return False


def _stage(workers: Workers, spec: InitialLoadSpec, loads: Loads, plan: LoadPlan) -> TableLoad:
    """Read the missing chunks of a load and publish its manifest."""
    chunks = loads.chunks(plan)
    missing = [number for number in range(plan.chunks) if number not in chunks]
    _LOG.info("table %s: %d of %d chunks are to be read", plan.name, len(missing), plan.chunks)
    for chunk in _read(workers, spec, plan, missing, list(chunks.values())):
        chunks[chunk.number] = chunk
    mine = _manifest(spec.server, plan, chunks.values(), spec.read_from if plan.gtids else None)
    published = loads.publish(plan, mine)
    _LOG.info("table %s: staged, exact at %s", plan.name, published.exact_at)
    return _result(plan, published, "staged" if published.canonical() == mine.canonical() else "already")


def _plan(loads: Loads, spec: InitialLoadSpec, table: TableName) -> LoadPlan | None:
    """Return the plan of a finished or resumable load, or a new plan; None if the table must be read in one piece.

    A table without a key must be, and a history: no change may be in the load and in the log after it.
    """
    not_before = Position.parse(spec.not_before).seqno(spec.shift) if spec.not_before else 0
    existing = loads.newest(table, not_before) or (None if not_before else loads.newest_followed(table))
    finished = loads.manifest(existing) if existing else None
    if existing and finished and not _repeats_changes(loads, spec, existing, finished):
        _check_log_has_grown(loads, spec, existing)
        return existing
    with connected(spec.server) as connection:
        check_identity(connection, spec.identity)
        key = None if spec.is_history(table) else read_key(connection, table)
        usable = existing and (key if existing.key else loads.chunks(existing))
        same = existing and existing.undecodable == spec.undecodable
        if existing and usable and same and can_resume(connection, existing):
            return existing  # in one piece only if everything is read: the snapshot is gone
        return loads.begin(plan_load(connection, spec, table, key)) if key else None


def _repeats_changes(loads: Loads, spec: InitialLoadSpec, plan: LoadPlan, manifest: Manifest) -> bool:
    """Return whether a finished load would give a history changes that the log after it has as well.

    It read the table in chunks, because the table was no history yet.
    """
    inexact = bool(plan.key) and manifest.exact_at_seqno > manifest.start_seqno
    return inexact and spec.is_history(plan.name) and not loads.is_in_warehouse(plan)


def _check_log_has_grown(loads: Loads, spec: InitialLoadSpec, plan: LoadPlan) -> None:
    """Check that a table which is to be read again is not in the warehouse as of the end of the log.

    There is one load per position. Its rows may be older than those of the table: a session can write nothing to the
    log. And another tool may have changed the table in the warehouse.

    Raises:
        RetryableError: it is.
    """
    if plan.position == spec.not_before and loads.is_in_warehouse(plan):
        raise RetryableError(
            "the table cannot be read again, because the log has not grown since it was loaded",
            why="there is one load per position of the log; if an earlier attempt to read it again has loaded it,"
            " nothing is left to do",
            hint=NEEDS_NEW_POSITION,
            table=plan.name,
            position=plan.position,
        )


def _read_whole(workers: Workers, spec: InitialLoadSpec, loads: Loads, table: TableName) -> LoadPlan:
    """Read a table in one piece, and return its plan."""
    attempt = uuid.uuid4().hex[:12]

    def work(name: TableName) -> str:
        from loader.initial_load.whole_table import load_whole_table  # see _read_chunk

        return load_whole_table(spec, name, attempt)

    (key,) = workers.each(work, [table])
    return loads.plan(key)


def _read(
    workers: Workers, spec: InitialLoadSpec, plan: LoadPlan, numbers: list[int], staged: Sequence[LoadedChunk]
) -> list[LoadedChunk]:
    """Read chunks, each on its own connection, and log the progress regularly."""
    if not numbers:
        return []
    server = spec.read_from if spec.read_from and plan.gtids else spec.server
    if server is not spec.server:
        wait_for_reader(spec.server, server, plan)
    root, key, limits = spec.staging_root, plan_key(plan), spec.limits
    attempt = uuid.uuid4().hex[:12]
    files = [chunk.file for chunk in staged if chunk.file]
    chunks = workers.counter(len(staged))
    rows, size = workers.counter(sum(file.rows for file in files)), workers.counter(sum(file.bytes for file in files))

    def work(number: int) -> LoadedChunk:
        chunk = _read_chunk(server, root, key, attempt, number, limits)
        chunks.add(1)
        rows.add(chunk.file.rows if chunk.file else 0)
        size.add(chunk.file.bytes if chunk.file else 0)
        return chunk

    def report() -> None:
        Progress(str(plan.name), chunks.value, plan.chunks, "chunks", rows.value, size.value).report()

    report()
    with ThreadPoolExecutor(1) as waiting:
        result = waiting.submit(workers.each, work, numbers)
        while True:
            try:
                read = result.result(_REPORT_SECONDS)
            except StillRunning:
                report()
            else:
                report()
                return read


def _read_chunk(
    server: ServerAddress, root: str, key: str, attempt: str, number: int, limits: ReadLimits
) -> LoadedChunk:
    # Not at the top: the codec compiles or loads its kernels on import, and the driver of a cluster does not need them.
    from loader.initial_load.chunk_task import load_chunk

    return load_chunk(server, root, key, attempt, number, limits)


def _manifest(
    server: ServerAddress, plan: LoadPlan, chunks: Iterable[LoadedChunk], read_from: ServerAddress | None = None
) -> Manifest:
    with connected(server) as connection:
        check_identity(connection, plan.identity)
        if read_from:
            with connected(read_from) as reader:
                wait_until_logged(connection, reader, plan)
        end = log_end(connection)
        if plan.key:
            check_unaltered(connection, plan)
    if end < Position.parse(plan.position):
        raise GapError(
            "the server's log ends before the position where the initial load began",
            why=f"the log ends at {end}: the log was reset or the server restored",
            hint=LOAD_ALL_AGAIN,
            position=plan.position,
        )
    end = end if plan.key else Position.parse(plan.locked_at or plan.position)
    files = tuple(chunk.file for chunk in sorted(chunks, key=lambda chunk: chunk.number) if chunk.file)
    return Manifest(
        source=plan.source,
        generation=plan.generation,
        identity=plan.identity,
        start=plan.position,
        stop=plan.position,
        start_seqno=plan.seqno,
        stop_seqno=plan.seqno,
        files=files,
        schemas={plan.definition.schema_id: plan.definition.as_dict()},
        exact_at=str(end),
        exact_at_seqno=end.seqno(plan.shift),
        unlogged=plan.unlogged,
        chunked=bool(plan.key),
        undecodable="hex" if plan.undecodable == "hex" else "",
        loader_version=__version__,
    )


def _result(plan: LoadPlan, manifest: Manifest, status: Literal["staged", "already"]) -> TableLoad:
    return TableLoad(
        table=str(plan.name),
        status=status,
        rows=sum(file.rows for file in manifest.files),
        bytes=sum(file.bytes for file in manifest.files),
        chunks=plan.chunks,
        position=manifest.start,
        exact_at=manifest.exact_at,
        manifest=manifest_key(plan),
    )
