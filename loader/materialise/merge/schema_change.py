"""Changes the columns of an Iceberg table before and after a merge.

Before the merge, new columns are added under aliases and types become wider. Readers notice neither. The transaction
that publishes the merge renames the new columns, drops old columns, and restores the source's column order. So readers
see rows and columns change at once. A merge that another one has overtaken changes no columns.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import count

from py4j.java_gateway import JavaObject

from loader.errors import DataError, UnsupportedError
from loader.failpoints import failpoint
from loader.materialise.iceberg.publication import FinishTransaction, swap_metadata
from loader.materialise.iceberg.table_metadata import TableMetadata, iceberg_types
from loader.materialise.iceberg.warehouse import Warehouse, check_file_format, schema_property
from loader.materialise.plan.column_names import ALIAS_PREFIX
from loader.materialise.plan.table_layout import Layout
from loader.materialise.quoting import identifier
from loader.model.table import TableName
from loader.types.warehouse import widened_type

ColumnTypes = Mapping[str, str]
"""By name of a column in the table, its Spark type."""
_ANY_SCHEMA = "write.spark.accept-any-schema"


def prepare_columns(
    warehouse: Warehouse, table: TableName, metadata: TableMetadata, before: Layout, layouts: Sequence[Layout]
) -> FinishTransaction | None:
    """Prepare a table for writes in these layouts. Return what the publishing transaction must change afterwards.

    Return None if the columns do not change, no other merge left an alias behind, and no other tool dropped a column.

    Args:
        warehouse: the catalog.
        table: the table.
        metadata: of the table, for which the layouts were planned.
        before: the layout of the table now.
        layouts: the layouts of the stages in order. The table gets the last one.

    Raises:
        UnsupportedError: the warehouse cannot hold a column or a type, or cannot drop a column.
        BranchLostError: another commit moved main. Nothing was changed.
    """
    unchanged = all(layout.has_columns_of(before) for layout in layouts)
    present = metadata.column_names
    left = any(name.startswith(ALIAS_PREFIX) for name in present)
    complete = all(column.name in present for layout in layouts for column in layout.columns)
    if not layouts or (unchanged and complete and not left):
        return None
    Layout(layouts[-1].schema, layouts[-1].rule).check()
    check_file_format(metadata, layouts[-1])
    _check_partitions(metadata, before, layouts[-1])
    _check_any_schema(metadata, table)
    required = _required_types(layouts, table)

    def prepare(change: JavaObject, seen: TableMetadata) -> None:
        _add_and_widen(warehouse, table, change, required)
        if _must_reorder(seen, before, layouts[-1]):
            _reorder(change, seen, layouts[-1].key)

    if _changes(_columns_of(warehouse, table), required, table) or _must_reorder(metadata, before, layouts[-1]):
        swap_metadata(warehouse, table, metadata.head, prepare)
    failpoint("columns.after")
    return partial(_finish_columns, warehouse, table, before, layouts[-1])


def check_kept_columns(metadata: TableMetadata, before: Layout, layouts: Sequence[Layout]) -> None:
    """Check that the table still has the columns whose values a merge keeps. A merge would add them again, empty.

    A column that the merge drops may be missing: the table may have been rolled back to a snapshot from before that.

    Args:
        metadata: of the table.
        before: the layout of the table at its applied position.
        layouts: see `prepare_columns`.

    Raises:
        DataError: another tool dropped a column.
    """
    present = metadata.column_names
    if metadata.applied:
        present -= metadata.dropped_since(metadata.applied.snapshot)
    kept = {column.name for column in before.columns}
    if layouts:
        kept &= {column.name for column in layouts[-1].columns}
    if lost := sorted(kept - present):
        raise DataError(
            "columns of the warehouse's table were dropped by another tool",
            why=f"{', '.join(lost)}: the rows of the table lost these values, and the log does not have them",
            hint=before.replacement,
            table=before.schema.name,
        )


def _check_partitions(metadata: TableMetadata, before: Layout, after: Layout) -> None:
    """Check that the table is not partitioned by a dropped column. Iceberg cannot drop such a column.

    Raises:
        UnsupportedError: the table is partitioned by a dropped column.
    """
    dropped = _dropped_columns(metadata.column_names, before, after)
    for field, column in metadata.partition_fields.items():
        if column in dropped:
            raise UnsupportedError(
                "the source dropped a column by which the warehouse's table is partitioned",
                why=f"partition field {field}",
                hint=f"in Spark SQL: ALTER TABLE {metadata.name} DROP PARTITION FIELD {identifier(field)}",
                table=before.schema.name,
                column=column,
            )


def _check_any_schema(metadata: TableMetadata, table: TableName) -> None:
    """Check that Iceberg accepts columns in another order than that of the table, as added columns need it.

    Raises:
        UnsupportedError: it does not.
    """
    if metadata.properties.get(_ANY_SCHEMA, "").lower() == "true":
        raise UnsupportedError(
            "the columns of the table cannot change, because it accepts any schema",
            why=f"the table has the property {_ANY_SCHEMA}",
            hint=f"in Spark SQL: ALTER TABLE {metadata.name} UNSET TBLPROPERTIES ('{_ANY_SCHEMA}')",
            table=table,
        )


def _required_types(layouts: Sequence[Layout], table: TableName) -> dict[str, str]:
    """Return the type that each column needs, by its name in the table."""
    found: dict[str, str] = {}
    for column in (column for layout in layouts for column in layout.columns):
        found[column.name] = _wider_type(found.get(column.name, column.type), column.type, table, column.name)
    return found


def _finish_columns(warehouse: Warehouse, table: TableName, before: Layout, after: Layout, change: JavaObject) -> None:
    final = Layout(after.schema, after.rule)
    names = {now.name: then.name for now, then in zip(after.columns, final.columns, strict=True)}
    present = list(_columns_of(warehouse, table))
    _change_columns(change, present, _dropped_columns(present, before, after), names)
    change.updateProperties().set(*schema_property(after.schema)).commit()


def _dropped_columns(present: Iterable[str], before: Layout, after: Layout) -> set[str]:
    """Return the columns to drop: those that the source dropped, and aliases that a failed merge left behind."""
    names = {column.name for column in after.columns}
    kept = {column.name for column in before.image} if after.rule.on_drop == "keep" else set()
    unpublished = {name for name in present if name.startswith(ALIAS_PREFIX)}
    return (unpublished - names) | ({column.name for column in before.columns} - names - kept)


def _must_reorder(metadata: TableMetadata, before: Layout, after: Layout) -> bool:
    """Return whether the key changes, or the write order has a column that the merge drops: Iceberg would refuse that.

    A merge that failed may have ordered the table by other columns than those of `before`. So may its owner.
    """
    order = metadata.write_order
    return before.key != after.key or not _dropped_columns(order, before, after).isdisjoint(order)


def _changes(present: ColumnTypes, needed: ColumnTypes, table: TableName) -> dict[str, str]:
    """Return the types of the columns to add or to widen, by name.

    Raises:
        UnsupportedError: Iceberg cannot widen a column to the needed type.
    """
    types = {column: _wider_type(present.get(column, kind), kind, table, column) for column, kind in needed.items()}
    return {column: kind for column, kind in types.items() if kind != present.get(column)}


def _add_and_widen(warehouse: Warehouse, table: TableName, change: JavaObject, needed: ColumnTypes) -> None:
    """Add the missing columns and widen types, in an Iceberg transaction."""
    present = _columns_of(warehouse, table)
    changed = _changes(present, needed, table)
    if not changed:
        return
    update = change.updateSchema()
    for column, kind in iceberg_types(warehouse.session, changed).items():
        if column in present:
            update.updateColumn(column, kind)
        else:
            update.addColumn(None, column, kind)
    update.commit()


def _columns_of(warehouse: Warehouse, table: TableName) -> dict[str, str]:
    """Return the Spark types of the table's current columns, in table order."""
    return dict(warehouse.session.table(warehouse.name(table)).dtypes)


def _change_columns(change: JavaObject, present: Sequence[str], gone: Container[str], after: Mapping[str, str]) -> None:
    """Drop, rename and reorder columns in an Iceberg transaction.

    Args:
        change: the transaction.
        present: names of all columns of the table, in table order.
        gone: names of the columns to drop.
        after: by name during the merge, the final name of each column, in final order.
    """
    left = [name for name in present if name not in gone]
    others = [name for name in left if name not in after]
    order = [*after, *others]
    update = change.updateSchema()
    for name in present:
        if name in gone:
            update.deleteColumn(name)
    for name, final in (dict(after) | _rename_dropped(others, after.values())).items():
        if name != final:
            update.renameColumn(name, final)
    if order != left:
        update.moveFirst(order[0])
        for name, previous in zip(order[1:], order, strict=False):
            update.moveAfter(name, previous)
    update.commit()


def _rename_dropped(others: Sequence[str], finals: Iterable[str]) -> dict[str, str]:
    """Return new names for kept columns that the source dropped, if a current column needs their name."""
    taken = {name.lower() for name in (*others, *finals)}
    needed = {name.lower() for name in finals}
    found: dict[str, str] = {}
    for name in (name for name in others if name.lower() in needed):
        free = (f"{name}__dropped{number or ''}" for number in count())
        found[name] = next(new for new in free if new.lower() not in taken)
        taken.add(found[name].lower())
    return found


def _reorder(change: JavaObject, metadata: TableMetadata, key: Sequence[str]) -> None:
    """Set the table's write order to these columns in an Iceberg transaction, as WRITE ORDERED BY and UNORDERED do."""
    metadata.set_write_order(change, key)
    change.updateProperties().set("write.distribution-mode", "range" if key else "none").commit()


def _wider_type(one: str, other: str, table: TableName, column: str) -> str:
    found = widened_type(one, other)
    if found is None:
        raise UnsupportedError(
            f"the column's type would have to change from {one} to {other}, which the warehouse cannot follow",
            hint=table.load_again,
            table=table,
            column=column,
        )
    return found
