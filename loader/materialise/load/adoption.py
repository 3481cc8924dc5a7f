"""Takes over Iceberg tables that were loaded by other means: they get an owner, and an applied position in a commit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from loader.errors import DataError, RetryableError, UsageError
from loader.failpoints import failpoint
from loader.materialise.iceberg.commit_lock import table_lock
from loader.materialise.iceberg.publication import BranchLostError, Publication
from loader.materialise.iceberg.table_metadata import (
    EXACT_AT,
    EXACT_AT_SEQNO,
    RUN,
    SOURCE,
    TableMetadata,
    commit_properties,
    signature,
)
from loader.materialise.iceberg.warehouse import Warehouse, check_file_format, check_owner, table_properties
from loader.materialise.load.key_check import check_keys
from loader.materialise.merge.table_results import idle_result
from loader.materialise.merge.table_tasks import run_guarded
from loader.materialise.plan.table_layout import Layout, TableColumn
from loader.materialise.quoting import identifier
from loader.materialise.rules import check_rule
from loader.materialise.spec import AdoptSpec, MaterialiseResult, TableResult
from loader.model.table import TableSchema
from loader.staging.chain import PlanChain
from loader.staging.notes.outdated_records import OutdatedNotes
from loader.store.registry import open_store

_ICEBERG_TYPES = {"bigint": "long", "timestamp": "timestamptz"}
"""By Spark type, the Iceberg type of the loader's own columns in a mirror."""


def adopt(spark: SparkSession, spec: AdoptSpec) -> MaterialiseResult:
    """Take over tables. A table that fails is reported and stops no other table."""
    warehouse = Warehouse(spark, spec.catalog, spec.rules)
    schemas = [TableSchema.from_dict(definition) for definition in spec.definitions]
    outdated = OutdatedNotes(PlanChain(open_store(spec.staging_root), spec.source), spec.generation)
    outdated.add()
    results = [run_guarded(schema.name, partial(adopt_table, warehouse, spec, schema)) for schema in schemas]
    outdated.add()
    return MaterialiseResult(tables=tuple(sorted(results, key=lambda result: result.table)))


def adopt_table(warehouse: Warehouse, spec: AdoptSpec, schema: TableSchema) -> TableResult:
    """Take over a table as of a position, in one commit that changes no row.

    Args:
        warehouse: the catalog.
        spec: source, generation and position.
        schema: the definition of the source's table at the position.

    Raises:
        UsageError: the warehouse has no such table, or the loader made it.
        DataError: its columns are not those of the source's table, or rows have no mark of deletion, NULL in their key
            or the same key.
        RetryableError: another tool committed to it meanwhile.
    """
    table = schema.name
    layout = Layout(schema, warehouse.rule(table))
    layout.check()
    failpoint("table.before")
    with table_lock(warehouse.catalog, table):
        metadata = warehouse.metadata(table)
        if metadata is None:
            raise UsageError(
                "the warehouse has no such table", hint=f"loader initial-load --table {table.argument}", table=table
            )
        if SOURCE in metadata.properties:
            return _adopted(metadata, spec, layout)
        check_file_format(metadata, layout)
        missing = _missing_columns(warehouse, layout)
        _check_marks(warehouse, layout)
        check_keys(warehouse, layout)
        run = uuid.uuid4().hex
        publication = Publication(warehouse, table, metadata.head, run)
        try:
            publication.publish(partial(_take_over, spec, layout, missing, run))
        except BranchLostError as error:
            raise RetryableError(
                "another tool committed to the table while it was adopted",
                hint="stop the other tool, then run the command again",
                table=table,
            ) from error
        (head,) = publication.commits()
    return TableResult(
        table=str(table),
        status="applied",
        applied_seqno=spec.seqno,
        position=spec.position,
        snapshot=head.id,
        complete_through=spec.seqno,
    )


def _adopted(metadata: TableMetadata, spec: AdoptSpec, layout: Layout) -> TableResult:
    """Return the result of a table that an earlier run adopted at this position.

    Raises:
        DataError: the table belongs to another source.
        UsageError: the table was loaded, or adopted at another position.
    """
    table = layout.schema.name
    check_owner(metadata, table, spec.source, {spec.generation: spec.log})
    check_rule(metadata.properties, layout.rule, table)
    loads = [applied for applied in metadata.applied_positions() if applied.loaded]
    for applied in loads:
        if applied.seqno == spec.seqno:
            return idle_result(table, applied, "already", applied.seqno)
    known = f"at {loads[0].position}" if loads else "elsewhere"
    finish = f"; to finish an adoption: loader adopt --table {table.argument} --at {loads[0].position}" if loads else ""
    raise UsageError(
        "the table is the loader's already",
        why=f"it was loaded or adopted {known}, not at {spec.position}",
        hint=f"loader run{finish}; to read it from the source again: {table.load_again}",
        table=table,
    )


def _check_marks(warehouse: Warehouse, layout: Layout) -> None:
    """Check that each row is marked as deleted or as not deleted.

    Raises:
        DataError: rows have NULL.
    """
    if layout.rule.mode != "soft_delete":
        return
    name, column = warehouse.name(layout.schema.name), layout.rule.deleted_column
    if warehouse.session.table(name).where(f"{identifier(column)} IS NULL").isEmpty():
        return
    raise DataError(
        "rows of the table are neither marked as deleted nor as not deleted",
        hint=f"in Spark: UPDATE {name} SET {identifier(column)} = false WHERE {identifier(column)} IS NULL",
        table=layout.schema.name,
        column=column,
    )


def _missing_columns(warehouse: Warehouse, layout: Layout) -> list[TableColumn]:
    """Return the loader's own columns that a mirror lacks.

    Raises:
        DataError: the other columns differ.
    """
    table = layout.schema.name
    present = dict(warehouse.session.table(warehouse.name(table)).dtypes)
    missing = [column for column in layout.columns if column.name not in present]
    own = set(layout.columns[len(layout.image) :]) if layout.rule.mode == "mirror" else set()
    names = {column.name for column in layout.columns}
    differences = [
        *(f"{column.name} is missing" for column in missing if column not in own),
        *(
            f"{column.name} is {present[column.name]} instead of {column.type}"
            for column in layout.columns
            if present.get(column.name, column.type) != column.type
        ),
        *(f"the source has no {name}" for name in present if name not in names),
    ]
    if differences:
        raise DataError(
            "the table in the warehouse does not have the columns of the source's table",
            why="; ".join(differences),
            hint=f"change its columns with ALTER TABLE; or drop it, then: {table.load_again}",
            table=table,
        )
    return missing


def _take_over(
    spec: AdoptSpec,
    layout: Layout,
    missing: Sequence[TableColumn],
    run: str,
    change: JavaObject,
    metadata: TableMetadata,
) -> None:
    """Add everything to a transaction that makes a table the loader's."""
    schema = layout.schema
    properties = change.updateProperties()
    made = table_properties(layout, spec.source, spec.generation, spec.unlogged.get(str(schema.name)))
    if metadata.format_version > 1:
        del made["format-version"]  # Iceberg refuses an older version
    for name, value in made.items():
        properties.set(name, value)
    properties.commit()
    metadata.make_columns_optional(change, {column.name: _ICEBERG_TYPES[column.type] for column in missing})
    metadata.set_write_order(change, layout.key)
    signed = signature(
        seqno=spec.seqno,
        position=spec.position,
        source=spec.source,
        generation=spec.generation,
        log=spec.log,
        schema_id=schema.schema_id,
    )
    exact = {EXACT_AT: spec.exact_at, EXACT_AT_SEQNO: str(spec.exact_at_seqno)}
    commit_properties(change.newAppend(), {RUN: run, **signed, **exact})
