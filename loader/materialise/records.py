"""The staged records of a merge's work as one frame, in the columns of the table as it becomes.

Frames from here have `_op`, `_seqno`, `_row_offset`, `_committed_at`, `_absent`; `_new`, whether the record counts;
`_form`, the number of the schema that tells how its texts are cast; then `c0`... as staged text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.materialise.plan import Source, Window, Work
from loader.materialise.reading import escaped, places, read_staged
from loader.model.table import Column
from loader.schema.evolution import Kept, Origin
from loader.store.base import Store
from loader.typemap import form, spark_type

META = ("_op", "_seqno", "_row_offset", "_committed_at", "_absent", "_new", "_form")


def read_records(session: SparkSession, store: Store, work: Work) -> DataFrame:
    """Every record of the files of `work`. One that is in no window of its source has the form -1.

    Raises:
        UnsupportedError: incomplete row images of a table whose columns changed meanwhile.
    """
    frames = [_read(session, store, work, number) for number in range(len(work.sources))]
    return reduce(DataFrame.unionAll, frames) if frames else _nothing(session, work)


def cast_apart(work: Work, place: int) -> dict[Column, list[int]]:
    """The columns whose texts are not cast as those of the table's column at this place are, with their forms."""
    column = work.schema.columns[place]
    apart: dict[Column, list[int]] = {}
    for number, source in enumerate(work.sources):
        origins = [window.origins[column.name] for window in source.windows]
        kept = {source.schema.column(origin.old) for origin in origins if isinstance(origin, Kept)}
        for old in kept:
            if form(old) is not form(column) or spark_type(old) != spark_type(column):
                apart.setdefault(old, []).append(number)
    return apart


def _read(session: SparkSession, store: Store, work: Work, number: int) -> DataFrame:
    source = work.sources[number]
    lines = read_staged(session, [store.uri(file.key) for file in source.files], source.schema)
    inside, beside = _inside(source, work)
    of_form = sf.when(beside, sf.lit(-1)).otherwise(sf.lit(number))
    columns = [
        _from_origins(source, [window.origins[column.name] for window in source.windows]).alias(place)
        for place, column in zip(places(work.schema), work.schema.columns, strict=True)
    ]
    return lines.select(*META[:5], inside.alias("_new"), of_form.alias("_form"), *columns)


def _inside(source: Source, work: Work) -> tuple[Expression, Expression]:
    """Whether a record is in a window of its source, and whether it ought to be in one and is not."""
    low, high = min(f.min_seqno for f in source.files), max(f.max_seqno for f in source.files)
    if len(source.windows) == 1 and source.windows[0].after < low and high <= source.windows[0].through:
        return sf.lit(True), sf.lit(False)
    inside = reduce(Expression.__or__, map(_within, source.windows))
    counts = (sf.col("_seqno") > work.applied) & (sf.col("_seqno") <= work.target)
    return inside, counts & ~inside


def _within(window: Window) -> Expression:
    return (sf.col("_seqno") > window.after) & (sf.col("_seqno") <= window.through)


def _from_origins(source: Source, origins: Sequence[Origin]) -> Expression:
    """A column's staged text by the window that a record is in."""
    texts = [_text(source, origin) for origin in origins]
    if len(set(origins)) == 1:
        return texts[0]
    cases = zip(source.windows[:-1], texts[:-1], strict=True)
    return reduce(lambda other, case: sf.when(_within(case[0]), case[1]).otherwise(other), cases, texts[-1])


def _text(source: Source, origin: Origin) -> Expression:
    if isinstance(origin, Kept):
        names = [column.name for column in source.schema.columns]
        return sf.col(places(source.schema)[names.index(origin.old)])
    return sf.lit(None if origin.text is None else escaped(origin.text)).cast("string")


def _nothing(session: SparkSession, work: Work) -> DataFrame:
    kinds = {"_seqno": "bigint", "_row_offset": "bigint", "_new": "boolean", "_form": "int"}
    names = (*META, *places(work.schema))
    return session.createDataFrame([], ", ".join(f"`{name}` {kinds.get(name, 'string')}" for name in names))
