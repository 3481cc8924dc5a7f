"""Applies an initial load: creates a table or replaces its rows, with the applied position in the same commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from py4j.java_gateway import JavaObject

from loader.errors import DataError, LoaderError, RetryableError, StagedDataError
from loader.failpoints import failpoint
from loader.materialise.iceberg.branch import Branch, drop_superseded
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.iceberg.data_files import DataFiles
from loader.materialise.iceberg.publication import BranchLostError, FinishTransaction, Publication, is_conflict
from loader.materialise.iceberg.table_metadata import (
    APPLIED,
    EXACT_AT,
    EXACT_AT_SEQNO,
    RUN,
    SOURCE,
    Snapshot,
    TableMetadata,
    signature,
)
from loader.materialise.iceberg.warehouse import Warehouse, check_owner
from loader.materialise.load.load_notes import is_noted
from loader.materialise.load.native_load import write_natively
from loader.materialise.load.row_insert import insert_rows
from loader.materialise.load.staged_load import StagedLoad
from loader.materialise.merge.schema_change import check_kept_columns, prepare_columns
from loader.materialise.merge.table_results import idle_result, unknown_position_error
from loader.materialise.plan.column_aliases import assign_reload_aliases
from loader.materialise.plan.merge_plan import Work
from loader.materialise.rules import check_rule
from loader.materialise.spec import TableResult
from loader.model.table import TableName
from loader.staging.documents import Manifest
from loader.staging.notes.outdated_records import OutdatedNotes
from loader.staging.notes.overtaken_loads import OvertakenLoads
from loader.store.base import Store

_ATTEMPTS = 5
MayHaveReached = Callable[[TableName, int], bool]


def load_table(
    warehouse: Warehouse,
    store: Store,
    load: StagedLoad,
    logs: Mapping[str, str],
    outdated: OutdatedNotes,
    may_have_reached: MayHaveReached,
) -> TableResult:
    """Apply an initial load, unless the table's applied position is at or after the load's position.

    Args:
        warehouse: the catalog.
        store: of the load's files.
        load: the initial load.
        logs: by name, `Generation.log` of the generations that the table's applied position may belong to.
        outdated: gets a note before rows are written.
        may_have_reached: see PlanChain.

    Raises:
        LoaderError: the table cannot be loaded; its rows are unchanged.
    """
    began = time.monotonic()
    work = replace(load.work, rule=warehouse.rule(load.work.name))
    failpoint("table.before")
    with table_lock(warehouse.catalog, work.name):
        for _ in range(_ATTEMPTS):
            try:
                result = _attempt(warehouse, store, load, work, logs, outdated, may_have_reached)
            except Exception as error:
                if not is_conflict(error):
                    raise
                continue
            return result.model_copy(update={"seconds": round(time.monotonic() - began, 3)})
    raise RetryableError("others committed to the table during each attempt", hint="run again", table=work.name)


def _attempt(
    warehouse: Warehouse,
    store: Store,
    load: StagedLoad,
    work: Work,
    logs: Mapping[str, str],
    outdated: OutdatedNotes,
    may_have_reached: MayHaveReached,
) -> TableResult:
    manifest = load.manifest
    if manifest.adopted:
        _check_adopted(warehouse, work)
    metadata = _create_table(warehouse, manifest, work)
    applied = check_owner(metadata, work.name, manifest.source, logs)
    check_rule(metadata.properties, work.rule, work.name)
    if applied is not None and applied.seqno > work.target and not may_have_reached(work.name, applied.seqno):
        raise unknown_position_error(work.name, applied.position)
    if (
        applied is not None
        and applied.seqno >= work.target
        and (manifest.adopted or _has_load(warehouse, store, load, metadata))
    ):
        return idle_result(work.name, applied, "already", applied.seqno)
    _check_fits_history(manifest, work)
    if applied is not None and applied.seqno > work.target:
        _note_overtaken(store, load, work)
    outdated.add()
    before = warehouse.layout(metadata, work.name)
    work = replace(work, aliases=assign_reload_aliases(before.schema, work.schema, work.rule))
    after = work.layout
    if work.rule.mode == "history":  # its rows stay, with the values of columns that the source no longer has
        warehouse.check_column_names(metadata, before)
        check_kept_columns(metadata, before, [after])
        after = replace(after, rule=work.rule.model_copy(update={"on_drop": "keep"}))
    finish = prepare_columns(warehouse, work.name, metadata, before, [after])
    signed = _signature(manifest, work, logs[manifest.generation])
    files = write_natively(warehouse, store, work)
    misfits: dict[str, int] = {}
    if files:
        head = _publish_files(warehouse, files, work, metadata.head, finish, signed)
    else:
        head, misfits = _load_with_spark(warehouse, store, work, metadata.head, finish, signed)
    drop_superseded(warehouse, work.name)
    committed = int(head.summary[APPLIED])
    return TableResult(
        table=str(work.name),
        status="applied",
        inserts=work.rows,
        bytes=load.bytes,
        rows_inserted=work.rows,
        applied_seqno=committed,
        position=work.position,
        snapshot=head.id,
        complete_through=committed,
        misfits=misfits,
    )


def _has_load(warehouse: Warehouse, store: Store, load: StagedLoad, metadata: TableMetadata) -> bool:
    """Return whether a table has the rows of an initial load, or of a later load.

    Merges may have brought a table to the position of its load, or past it, while the load was read. Then its rows are
    replaced nevertheless, and the log is merged again from there. The commit of a load may have expired; its note has
    not.
    """
    loads = (position.seqno for position in metadata.applied_positions() if position.loaded)
    if any(seqno >= load.work.target for seqno in loads):
        return True
    return is_noted(store, load.key, warehouse.catalog)


def _check_fits_history(manifest: Manifest, work: Work) -> None:
    """Check that a history does not get changes from a load that the log after it has as well.

    Raises:
        DataError: the table was read in chunks, before it became a history.
    """
    if work.rule.mode == "history" and manifest.chunked and manifest.exact_at_seqno > manifest.start_seqno:
        raise DataError(
            "the initial load was read in chunks, and the table is a history",
            why=f"the load may include changes up to {manifest.exact_at}, which the history would get twice",
            hint=work.name.load_again,
            table=work.name,
            position=manifest.start,
        )


def _note_overtaken(store: Store, load: StagedLoad, work: Work) -> None:
    """Note that a load is going to set the position of its table back.

    Raises:
        DataError: the table is a history. It would get the changes after the load once more.
    """
    if work.rule.mode == "history":
        raise DataError(
            "deltas were merged past the position of this initial load while its rows were read",
            why="the table is a history, which would get the changes since that position twice",
            hint=f"stop the deltas of the source (in Airflow: pause its DAG delta); {work.name.load_again}",
            table=work.name,
            position=load.manifest.start,
        )
    OvertakenLoads(store, load.manifest.source).begin(work.name, load.key, work.target)


def _check_adopted(warehouse: Warehouse, work: Work) -> None:
    """Check that a table that another tool loaded still has its rows: they are not staged."""
    metadata = warehouse.metadata(work.name)
    if metadata is None or metadata.applied is None or metadata.applied.seqno < work.target:
        raise LoaderError(
            "the adopted table is not in the warehouse any more, or only an older version of it",
            why="its rows are not staged, because another tool loaded it",
            hint=work.name.load_again,
            table=work.name,
        )


def _create_table(warehouse: Warehouse, manifest: Manifest, work: Work) -> TableMetadata:
    """Create the table unless it exists. Return its metadata, whose owner is not checked yet."""
    warehouse.create(work.schema, manifest.source, manifest.generation, manifest.unlogged)
    metadata = warehouse.metadata(work.name)
    if metadata is None:
        raise LoaderError("the table was dropped while it was loaded", table=work.name)
    if manifest.unlogged is not None and metadata.properties.get(SOURCE) == manifest.source:
        warehouse.note_unlogged(metadata, work.name, manifest.unlogged)
    return metadata


def _publish_files(
    warehouse: Warehouse,
    files: DataFiles,
    work: Work,
    base: int | None,
    finish: FinishTransaction | None,
    signed: Mapping[str, str],
) -> Snapshot:
    """Publish new data files of a table in one commit, and return it.

    Nothing was committed before. So no branch is needed to hide the rows from readers.
    """
    failpoint("insert.after")
    run = uuid.uuid4().hex
    publication = Publication(warehouse, work.name, base, run, columns=files.columns)

    def add(transaction: JavaObject, _: TableMetadata) -> None:
        if finish:
            finish(transaction)
        files.add_to(transaction, {RUN: run, **signed}, replace=work.rule.mode != "history")

    try:
        _check_rows(work, files.rows)
        publication.publish(add)
    except (BranchLostError, StagedDataError):
        files.delete()
        raise
    return publication.commits()[0]


def _load_with_spark(
    warehouse: Warehouse,
    store: Store,
    work: Work,
    base: int | None,
    finish: FinishTransaction | None,
    signed: dict[str, str],
) -> tuple[Snapshot, dict[str, int]]:
    """Insert the rows on a branch, publish it, and return its commit and the number of misfits by column."""
    with Branch(warehouse, work.name, base) as branch:
        misfits = insert_rows(warehouse, store, branch, work, None if finish else signed)
        _check_rows(work, branch.commits()[0].count("added-records"))
        return branch.publish(1, finish, signed if finish else None)[0], misfits


def _check_rows(work: Work, added: int) -> None:
    if added != work.rows:
        raise StagedDataError(
            "the staged files do not hold the number of rows in their manifest",
            why=f"{work.rows} in the manifest, {added} in the files",
            hint=work.name.load_again,
            table=work.name,
        )


def _signature(manifest: Manifest, work: Work, log: str) -> dict[str, str]:
    stands_at = signature(
        seqno=manifest.start_seqno,
        position=manifest.start,
        source=manifest.source,
        generation=manifest.generation,
        log=log,
        schema_id=work.schema.schema_id,
        hexed=manifest.undecodable == "hex",
    )
    return {**stands_at, EXACT_AT: manifest.exact_at, EXACT_AT_SEQNO: str(manifest.exact_at_seqno)}
