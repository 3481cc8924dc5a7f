"""Typed values of staged records, and the search for those that do not fit.

Frames here have a column `last`: a struct of a record's `_op`, `_seqno`, `_row_offset`, `_committed_at` and its
columns `c0`... as staged text. `typed_frame` adds the values as `t_c0`....
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from loader.errors import DataError
from loader.materialise.plan import Work
from loader.materialise.reading import key_places, may_not_fit, places, typed
from loader.typemap import spark_type

_RECORD = ("_op", "_seqno", "_row_offset", "_committed_at")


def record(work: Work) -> Expression:
    """A staged line as the struct that becomes `last`."""
    return sf.struct(*_RECORD, *places(work.schema))


def typed_frame(records: DataFrame, work: Work) -> DataFrame:
    """The frame with a typed value for every column of the table."""
    values = {
        f"t_{place}": typed(column, sf.col(f"last.{place}"), work.name)
        for place, column in zip(places(work.schema), work.schema.columns, strict=True)
    }
    return records.withColumns(values)


def row(work: Work) -> list[Expression]:
    """What is selected from a typed frame: `_op`, `_seqno`, `_committed_at`, then `c0`... typed."""
    meta = [sf.col("last._op"), sf.col("last._seqno"), sf.col("last._committed_at").cast("timestamp")]
    return [
        *(value.alias(name) for value, name in zip(meta, ("_op", "_seqno", "_committed_at"), strict=True)),
        *(sf.col(f"t_{place}").alias(place) for place in places(work.schema)),
    ]


def misfit(work: Work) -> Expression:
    """Whether a record of a typed frame has a value that would be used and does not fit; of a `D` only the key is."""
    keys = set(key_places(work.schema))
    wrong = sf.lit(False)
    for place, column in zip(places(work.schema), work.schema.columns, strict=True):
        if place in keys:
            wrong = wrong | sf.col(f"t_{place}").isNull()
        elif may_not_fit(column):
            wrong = wrong | (_lost(place) & (sf.col("last._op") != "D"))
    return wrong


def _lost(place: str) -> Expression:
    return sf.col(f"last.{place}").isNotNull() & sf.col(f"t_{place}").isNull()


def bad_value(records: DataFrame, work: Work) -> DataError:
    """The error that names the first column with a value that does not fit, one such value, and its position."""
    keys = set(key_places(work.schema))
    columns = list(zip(places(work.schema), work.schema.columns, strict=True))
    found = []
    for place, _ in columns:
        used = sf.col("last._op") != "D"
        wrong = sf.col(f"t_{place}").isNull() if place in keys else _lost(place) & used
        seqno = sf.when(wrong, sf.col("last._seqno"))
        example = sf.min_by(sf.col(f"last.{place}"), seqno)
        found.append(sf.struct(sf.count_if(wrong), example, sf.min(seqno)).alias(place))
    counted = typed_frame(records, work).agg(*found).first()
    for place, column in columns:
        count, text, at = counted[place] if counted else (0, None, 0)
        if count:
            return DataError(
                f"{count} value{'s do' if count > 1 else ' does'} not fit the column's type {spark_type(column)}",
                why=f"for example {'NULL in a key' if text is None else repr(text)}",
                hint="mend the value on the server and load the table again, or exclude the table",
                table=work.name,
                column=column.name,
                position=work.position_of(at),
                seqno=at,
            )
    raise AssertionError("no bad value among records that were found to hold one")
