"""Casts staged records to typed values, and finds misfits: values that do not fit the type of their column.

Frames have `_op`, `_seqno`, `_row_offset`, `_committed_at`, `_absent`, `_new` and `_form` of a staged record (see
`staged_records`), and its columns `c0`, `c1`, ... as staged text. They are fields of a struct `last`, or columns of a
relation `last`. `add_typed_columns` adds the values as `t_c0`, `t_c1`, ....
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from loader.errors import MisfitError
from loader.materialise.collapse.csv_reader import may_not_fit
from loader.materialise.collapse.staged_records import cast_value
from loader.materialise.conditions import any_of
from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.plan.merge_plan import Work
from loader.types.warehouse import spark_type

_RECORD = ("_op", "_seqno", "_row_offset", "_committed_at", "_absent", "_new", "_form")


def record_struct(work: Work) -> Expression:
    """Return a staged record as the struct that becomes `last`."""
    return sf.struct(*_RECORD, *places(work.schema))


def select_ungrouped(records: DataFrame, work: Work, *others: Expression) -> DataFrame:
    """Return the records as the relation `last`, with other columns.

    They are not a struct: Spark would copy the whole struct into the expression of each column before it simplifies
    them. That takes minutes for a thousand columns.
    """
    return records.select(*_RECORD, *places(work.schema), *others).alias("last")


def add_typed_columns(records: DataFrame, work: Work) -> DataFrame:
    """Return the frame with a typed value for every column of the table."""
    values = {
        f"t_{place}": cast_value(work, number, sf.col(f"last.{place}"), sf.col("last._form"))
        for number, place in enumerate(places(work.schema))
    }
    return records.withColumns(values)


def row_columns(work: Work) -> list[Expression]:
    """Return the columns of a row: `_op`, `_seqno`, `_row_offset`, `_committed_at`, `_new`, and `c0`, ... typed.

    Columns in `Layout.text_columns` also have `text_c0`, ... with the texts of misfits.
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
    """Return whether a record of a typed frame has a misfit that is used and that the rule refuses."""
    return any_of(wrong for _, wrong in _misfit_conditions(work))


def lacks_columns(work: Work) -> Expression:
    """Return whether a record leaves out columns that are used."""
    return sf.col("last._absent").isNotNull() & (sf.col("last._absent") != "") & _is_used(work)


def lost_values(work: Work) -> dict[str, Expression]:
    """Return, by name of each column that may have misfits, whether a record of a typed frame has one."""
    return {name: _is_lost(place) & _is_used(work) for place, name in work.layout.lenient_columns.items()}


def _misfit_conditions(work: Work) -> Iterator[tuple[str, Expression]]:
    """Yield the condition of `has_misfit` by the frame name of each column that may have a misfit."""
    keys, lenient_columns = set(key_places(work.schema)), work.layout.lenient_columns
    for place, column in zip(places(work.schema), work.schema.columns, strict=True):
        if place in keys:
            yield place, sf.col(f"t_{place}").isNull()
        elif may_not_fit(column) and place not in lenient_columns:
            yield place, _is_lost(place) & _is_used(work)


def _is_used(work: Work) -> Expression:
    """Return whether the columns of a record are used. Only the key of a `D` record in a mirror is used."""
    return sf.col("last._op") != "D" if work.schema.key and work.rule.mode == "mirror" else sf.lit(True)


def _is_lost(place: str) -> Expression:
    return sf.col(f"last.{place}").isNotNull() & sf.col(f"t_{place}").isNull()


def misfit_error(records: DataFrame, work: Work) -> MisfitError:
    """Return the error for the first column with misfits, with an example and its position."""
    columns = dict(zip(places(work.schema), work.schema.columns, strict=True))
    aggregates = []
    for place, wrong in _misfit_conditions(work):
        seqno = sf.when(wrong, sf.col("last._seqno"))
        example = sf.min_by(sf.col(f"last.{place}"), seqno)
        aggregates.append(sf.struct(sf.count_if(wrong), example, sf.min(seqno)).alias(place))
    counted = add_typed_columns(records, work).agg(*aggregates).first()
    for place, (count, text, first_seqno) in (counted.asDict() if counted else {}).items():
        if count:
            kind = spark_type(columns[place])
            in_key = place in key_places(work.schema)
            rule = "" if in_key else 'give the table a rule with on_misfit = "null"; or '
            return MisfitError(
                f"{count} value{'s do' if count > 1 else ' does'} not fit the column's type {kind}",
                why=f"for example {'NULL' if text is None else repr(text)}{' in the key' if in_key else ''}",
                hint=f"fix the value on the server, then: {work.name.load_again}; or {rule}{work.name.exclusion}",
                table=work.name,
                column=columns[place].name,
                position=work.position_of(first_seqno),
                seqno=first_seqno,
            )
    raise AssertionError("no misfit among records that were found to have one")
