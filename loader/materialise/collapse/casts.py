"""Typed values of staged records, and the search for those that do not fit.

Frames here have a record's `_op`, `_seqno`, `_row_offset`, `_committed_at`, `_absent`, `_new` and `_form` (see
`loader.materialise.collapse.staged_records`). They have its columns `c0`... as staged text: as fields of a struct
`last`, or as columns of a relation `last`. `typed_frame` adds the values as `t_c0`....
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from loader.errors import DataError
from loader.materialise.collapse.csv_reader import may_not_fit
from loader.materialise.collapse.staged_records import cast_value
from loader.materialise.conditions import any_of
from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.plan.merge_plan import Work
from loader.types.warehouse import spark_type

_RECORD = ("_op", "_seqno", "_row_offset", "_committed_at", "_absent", "_new", "_form")


def record_struct(work: Work) -> Expression:
    """A staged line as the struct that becomes `last`."""
    return sf.struct(*_RECORD, *places(work.schema))


def select_ungrouped(records: DataFrame, work: Work, *others: Expression) -> DataFrame:
    """The records as the relation `last`, with other columns.

    Not as a struct: Spark would write the whole struct into the expression of each column before it simplifies
    them, which takes minutes for a thousand columns.
    """
    return records.select(*_RECORD, *places(work.schema), *others).alias("last")


def add_typed_columns(records: DataFrame, work: Work) -> DataFrame:
    """The frame with a typed value for every column of the table."""
    values = {
        f"t_{place}": cast_value(work, number, sf.col(f"last.{place}"), sf.col("last._form"))
        for number, place in enumerate(places(work.schema))
    }
    return records.withColumns(values)


def row_columns(work: Work) -> list[Expression]:
    """What is selected from a typed frame: `_op`, `_seqno`, `_row_offset`, `_committed_at`, `_new`, then `c0`... typed.

    And by the rule `text_c0`..., texts that do not fit, of the columns of `Layout.texts`.
    """
    return [
        *(sf.col(f"last.{name}").alias(name) for name in ("_op", "_seqno", "_row_offset", "_new")),
        sf.col("last._committed_at").cast("timestamp").alias("_committed_at"),
        *(sf.col(f"t_{place}").alias(place) for place in places(work.schema)),
        *(
            sf.when(_is_lost(place), sf.col(f"last.{place}")).alias(f"text_{place}")
            for place in work.layout.text_columns
        ),
    ]


def has_misfit(work: Work) -> Expression:
    """Whether a record of a typed frame has a value that would be used, does not fit, and has to."""
    return any_of(wrong for _, wrong in _misfit_conditions(work))


def lacks_columns(work: Work) -> Expression:
    """Whether a record that would be used leaves columns out."""
    return sf.col("last._absent").isNotNull() & (sf.col("last._absent") != "") & _is_used(work)


def lost_values(work: Work) -> dict[str, Expression]:
    """Of each column whose values need not fit, by name: whether a record of a typed frame loses one."""
    return {name: _is_lost(place) & _is_used(work) for place, name in work.layout.lenient_columns.items()}


def _misfit_conditions(work: Work) -> Iterator[tuple[str, Expression]]:
    """See `misfit`, by the place of each column that may have such a value."""
    keys, lenient_columns = set(key_places(work.schema)), work.layout.lenient_columns
    for place, column in zip(places(work.schema), work.schema.columns, strict=True):
        if place in keys:
            yield place, sf.col(f"t_{place}").isNull()
        elif may_not_fit(column) and place not in lenient_columns:
            yield place, _is_lost(place) & _is_used(work)


def _is_used(work: Work) -> Expression:
    """Whether more than the key of a record is: not of a `D` in a mirror."""
    return sf.col("last._op") != "D" if work.schema.key and work.rule.mode == "mirror" else sf.lit(True)


def _is_lost(place: str) -> Expression:
    return sf.col(f"last.{place}").isNotNull() & sf.col(f"t_{place}").isNull()


def misfit_error(records: DataFrame, work: Work) -> DataError:
    """The error that names the first column with a value that does not fit, one such value, and its position."""
    columns = dict(zip(places(work.schema), work.schema.columns, strict=True))
    found = []
    for place, wrong in _misfit_conditions(work):
        seqno = sf.when(wrong, sf.col("last._seqno"))
        example = sf.min_by(sf.col(f"last.{place}"), seqno)
        found.append(sf.struct(sf.count_if(wrong), example, sf.min(seqno)).alias(place))
    counted = add_typed_columns(records, work).agg(*found).first()
    for place, (count, text, at) in (counted.asDict() if counted else {}).items():
        if count:
            kind = spark_type(columns[place])
            return DataError(
                f"{count} value{'s do' if count > 1 else ' does'} not fit the column's type {kind}",
                why=f"for example {'NULL in a key' if text is None else repr(text)}",
                hint="mend the value on the server and load the table again, give the table a rule with another "
                "on_misfit, or exclude it",
                table=work.name,
                column=columns[place].name,
                position=work.position_of(at),
                seqno=at,
            )
    raise AssertionError("no bad value among records that were found to hold one")
