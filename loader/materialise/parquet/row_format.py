"""The columns of a table in a Parquet file, and their values from records."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from loader.materialise.iceberg.data_files import arrow_fields
from loader.materialise.iceberg.table_metadata import TableMetadata
from loader.materialise.plan.frame_columns import key_places
from loader.materialise.plan.table_layout import IS_DELETED, Layout
from loader.model.table import TableSchema
from loader.native_collapse.last_records import NotSupportedNatively, check_keys
from loader.types.warehouse import widened_type


@dataclass(frozen=True)
class RowFormat:
    """How records become rows of a table.

    Attributes:
        records: the schema of the staged records.
        values: the value of each column of the table, as in `TableColumn`; None for a column without a value.
        fields: of the Parquet file, one for each column.
    """

    records: TableSchema
    values: tuple[str | None, ...]
    fields: pa.Schema

    def equals(self, other: RowFormat) -> bool:
        """Return whether rows of both formats can be in the same table."""
        same_ids = self.fields.equals(other.fields, check_metadata=True)  # == of schemas ignores the field ids
        return same_ids and (self.records, self.values) == (other.records, other.values)


def row_format(metadata: TableMetadata, layout: Layout) -> RowFormat | None:
    """Return how records become rows of a table; None if only Spark can write the table."""
    fields, values = arrow_fields(metadata), layout.values
    if fields is None or not values.keys() <= fields.keys():
        return None
    return RowFormat(layout.schema, tuple(map(values.get, fields)), pa.schema(list(fields.values())))


def to_rows(records: pa.Table, rows: RowFormat) -> pa.Table:
    """Return the rows of the table for records with the columns of `native_collapse.arrow_columns.read_columns`.

    Raises:
        NotSupportedNatively: Spark must write the rows.
    """
    check_keys(records, key_places(rows.records))
    columns = zip(rows.values, rows.fields, strict=True)
    return pa.table([_values(records, value, field) for value, field in columns], schema=rows.fields)


def _values(records: pa.Table, value: str | None, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if value == IS_DELETED:
        return pc.equal(records["_op"], "D")
    # The others are columns of other people, and texts of misfits: records with misfits are refused.
    known = value in records.column_names
    found = _cast(records[value], field) if known else pa.nulls(len(records), field.type)
    if found.null_count and not field.nullable:
        raise NotSupportedNatively(f"column {field.name} of the table is required, and a row has no value for it")
    return found


def _cast(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if values.type == field.type:
        return values
    if not _is_wider(values.type, field.type):
        raise NotSupportedNatively(f"column {field.name} is {field.type} in the table and {values.type} in the rows")
    return values.cast(field.type)


def _is_wider(staged: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether the table's type holds every value of the staged type."""
    names = {pa.int32(): "int", pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double"}
    one, other = (
        names.get(kind) or str(kind).replace("decimal128", "decimal").replace(", ", ",") for kind in (staged, wanted)
    )
    return widened_type(one, other) == other
