"""Reads the staged records of a merge's work as one frame, in the columns that the table has after the merge.

Columns of the frame: `_op`, `_seqno`, `_row_offset`, `_committed_at`, `_absent`; `_new`, whether the record counts;
`_form`, the number of the file group whose schema decides the casts; and `c0`, `c1`, ... as staged text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.collapse.csv_reader import escape, hex_bitmap, is_absent, read_staged, typed_value
from loader.materialise.conditions import any_of
from loader.materialise.plan.frame_columns import places
from loader.materialise.plan.merge_plan import FileGroup, RecordRange, Work
from loader.model.table import Column
from loader.schema.evolution import ColumnOrigin, Origin
from loader.store.base import Store
from loader.types.warehouse import form, spark_type

META = ("_op", "_seqno", "_row_offset", "_committed_at", "_absent", "_new", "_form")


def read_records(session: SparkSession, store: Store, work: Work) -> DataFrame:
    """Return every record of the files of `work`. Its form is -1 if it counts, but is in no range of its group."""
    frames = [_read(session, store, work, number) for number in range(len(work.file_groups))]
    return reduce(DataFrame.unionAll, frames) if frames else _empty_frame(session, work)


def cast_value(work: Work, place: int, raw: Expression, of_form: Expression) -> Expression:
    """Return the value of a column's staged text, by the schema that it was staged with."""
    column = work.schema.columns[place]
    value = typed_value(column, raw, work.name)
    for old, forms in columns_cast_apart(work, place).items():
        as_it_was = typed_value(old, raw, work.name).try_cast(spark_type(column))
        value = sf.when(of_form.isin(forms), as_it_was).otherwise(value)
    return value


def columns_cast_apart(work: Work, place: int) -> dict[Column, list[int]]:
    """Return the staged columns that are cast differently from the table's column at this place, with their forms."""
    column = work.schema.columns[place]
    apart: dict[Column, list[int]] = {}
    for number, group in enumerate(work.file_groups):
        origins = [counted.origins[column.name] for counted in group.ranges]
        kept = {group.schema.column(origin.old) for origin in origins if isinstance(origin, ColumnOrigin)}
        for old in kept:
            if form(old) is not form(column) or spark_type(old) != spark_type(column):
                apart.setdefault(old, []).append(number)
    return apart


def _read(session: SparkSession, store: Store, work: Work, number: int) -> DataFrame:
    group = work.file_groups[number]
    lines = read_staged(session, [store.uri(file.key) for file in group.files], group.schema)
    inside, stray = _range_conditions(group, work)
    of_form = sf.when(stray, sf.lit(-1)).otherwise(sf.lit(number))
    columns = [
        _text_by_range(group, [counted.origins[column.name] for counted in group.ranges]).alias(place)
        for place, column in zip(places(work.schema), work.schema.columns, strict=True)
    ]
    absent = _by_range(group, [_absent_bitmap(group, counted, work) for counted in group.ranges]).alias("_absent")
    return lines.select(*META[:4], absent, inside.alias("_new"), of_form.alias("_form"), *columns)


def _absent_bitmap(group: FileGroup, counted: RecordRange, work: Work) -> Expression:
    """Return the bitmap of absent columns, in the column order of the table."""
    names = [column.name for column in group.schema.columns]
    origins = [counted.origins[column.name] for column in work.schema.columns]
    olds = [names.index(origin.old) if isinstance(origin, ColumnOrigin) else None for origin in origins]
    if olds == list(range(len(names))):
        return sf.col("_absent")
    bits = [sf.lit(False) if old is None else is_absent(old) for old in olds]
    bitmap = hex_bitmap([*bits, is_absent(len(names))])
    return sf.when(any_of(bits), bitmap).otherwise(sf.lit(""))


def _range_conditions(group: FileGroup, work: Work) -> tuple[Expression, Expression]:
    """Return whether a record is in a range of its group, and whether it counts without being in a range."""
    low, high = min(f.min_seqno for f in group.files), max(f.max_seqno for f in group.files)
    if len(group.ranges) == 1 and group.ranges[0].after_seqno < low and high <= group.ranges[0].last_seqno:
        return sf.lit(True), sf.lit(False)
    inside = any_of(map(_is_in_range, group.ranges))
    counts = (sf.col("_seqno") > work.applied) & (sf.col("_seqno") <= work.target)
    return inside, counts & ~inside


def _is_in_range(counted: RecordRange) -> Expression:
    return (sf.col("_seqno") > counted.after_seqno) & (sf.col("_seqno") <= counted.last_seqno)


def _text_by_range(group: FileGroup, origins: Sequence[Origin]) -> Expression:
    """Return a column's staged text, by the range that a record is in."""
    texts = [_text(group, origin) for origin in origins]
    return texts[0] if len(set(origins)) == 1 else _by_range(group, texts)


def _by_range(group: FileGroup, values: Sequence[Expression]) -> Expression:
    """Return one of the values, by the range that a record is in."""
    cases = zip(group.ranges[:-1], values[:-1], strict=True)
    return reduce(lambda other, case: sf.when(_is_in_range(case[0]), case[1]).otherwise(other), cases, values[-1])


def _text(group: FileGroup, origin: Origin) -> Expression:
    if isinstance(origin, ColumnOrigin):
        names = [column.name for column in group.schema.columns]
        return sf.col(places(group.schema)[names.index(origin.old)])
    return sf.lit(None if origin.text is None else escape(origin.text)).cast("string")


def _empty_frame(session: SparkSession, work: Work) -> DataFrame:
    kinds = {"_seqno": "bigint", "_row_offset": "bigint", "_new": "boolean", "_form": "int"}
    names = (*META, *places(work.schema))
    return session.createDataFrame([], ", ".join(f"`{name}` {kinds.get(name, 'string')}" for name in names))
