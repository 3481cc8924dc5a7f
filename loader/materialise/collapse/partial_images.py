"""Completes partial row images (MINIMAL, NOBLOB) from earlier records of the row in the merge, or from the table.

A life of a row begins with an insert, or with the row in the table (life 0). It ends with a deletion. A column that a
record leaves out has the value of the last record before it in the same life. If the whole life leaves out the column,
its value is in the table (life 0), or in the row under its previous key, if the life began with an update of the key.

While an initial load reads, keys change. The load has a row under the key that the row had when its chunk was read: the
old key, the new key, or both. And it may have another row under the old key, which was inserted later. So until the
load ended, a value under a key is taken for a changed key only if the key had one row all the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from loader.errors import LoaderError, RetryableError, UnsupportedError
from loader.materialise.collapse.csv_reader import hex_bitmap, is_absent, staged_text, typed_value
from loader.materialise.collapse.staged_records import META, cast_value, columns_cast_apart
from loader.materialise.conditions import all_of, any_of
from loader.materialise.plan.frame_columns import key_places, places
from loader.materialise.plan.merge_plan import Work
from loader.materialise.quoting import identifier
from loader.model.table import Column, TableName


@dataclass(frozen=True)
class MergeBase:
    """The table that records are applied to.

    Attributes:
        relation: the table in SQL.
        exact_at: the seqno up to which the initial load may include changes made after its start position.
        logs_all_changes: whether each column that an update leaves out is unchanged. MySQL logs all changes. MariaDB
            logs a REPLACE of an existing row as an update, without the columns that the REPLACE sets to their defaults
            (seen on 10.11; a replica gets them wrong, too). It also leaves out generated columns that change.
        unlogged: generated columns, if the server leaves them out of updates; None if they are unknown.
    """

    relation: str
    exact_at: int
    logs_all_changes: bool
    unlogged: tuple[str, ...] | None


def complete_records(session: SparkSession, records: DataFrame, work: Work, base: MergeBase, within: str) -> DataFrame:
    """Return the records after the applied position, with all columns whose values are known.

    `_absent` has the columns that are still unknown; the bit after them is set if no insert explains that. It is empty
    if all columns are known. Records of a row that does not exist are dropped if the initial load explains that: it
    read the table after the row was deleted.

    Args:
        session: the Spark session.
        records: the staged records of `work`.
        work: the records of the merge.
        base: the table.
        within: see Changes.
    """
    known = _assign_lives(_with_uniform_casts(records.where("_new"), work), work, base.exact_at).localCheckpoint()
    _check_logged(known, work, base)
    # A checkpoint instead of a plan: Spark would read the table again after these rows are deleted.
    rows = _rows_in_table(session, known, work, base, within).localCheckpoint()
    by = [*key_places(work.schema)]
    filled = known.join(rows, by, "left")
    first = sf.col("life") == 0
    has_row = first | _is_moved_row(work, base)
    numbers = _column_numbers(work)
    values = {f"v{n}": sf.when(has_row, sf.coalesce(f"v{n}", f"b{n}")).otherwise(sf.col(f"v{n}")) for n in numbers}
    # What a life under another key may take: not the values of a row that may have come later.
    unsure = first & ~_has_one_row(work, base, 0)
    passed = {f"p{n}": sf.when(unsure, sf.col(f"v{n}")).otherwise(values[f"v{n}"]) for n in numbers}
    filled = filled.withColumns(passed).withColumns(values).drop(*(f"b{n}" for n in numbers))
    filled = _follow_key_changes(filled, work)
    unexplained = (sf.col("_seqno") > base.exact_at) | ~first | sf.col("there").isNotNull() | ~_has_unknown_value(work)
    kept = filled.where(unexplained) if work.rule.mode != "history" else filled
    columns = [
        sf.when(sf.col(f"v{n}").isNotNull(), sf.col(f"v{n}.value")).otherwise(sf.col(place)).alias(place)
        for n, place in enumerate(places(work.schema))
    ]
    unknown = hex_bitmap([*(sf.col(f"v{n}").isNull() for n in _column_numbers(work)), ~sf.col("inserted")])
    absent = sf.when(_has_unknown_value(work), unknown).otherwise(sf.lit("")).alias("_absent")
    return kept.select(*(absent if name == "_absent" else name for name in META), *columns)


def _with_uniform_casts(records: DataFrame, work: Work) -> DataFrame:
    """Return the records with all texts in the format of the table's columns, whatever schema they were staged with."""
    apart = [n for n in _column_numbers(work) if columns_cast_apart(work, n)]
    if not apart:
        return records
    texts = {
        f"c{n}": staged_text(work.schema.columns[n], cast_value(work, n, sf.col(f"c{n}"), sf.col("_form")))
        for n in apart
    }
    return records.withColumns({**texts, "_form": sf.lit(len(work.file_groups))})


def incomplete_error(last: DataFrame, work: Work, exact_at: int) -> LoaderError:
    """Return the error for the first record that lacks columns.

    Args:
        last: comes from `last_versions.group_by_key`.
        work: the records of the merge.
        exact_at: see MergeBase.
    """
    row = last.orderBy("last._seqno", "last._row_offset").select("last.*").first()
    if row is None:
        raise AssertionError("no incomplete record among records that were found to have one")
    bits = int.from_bytes(bytes.fromhex(row._absent), "little")
    names = [column.name for n, column in enumerate(work.schema.columns) if bits >> n & 1]
    key = {work.schema.columns[int(place[1:])].name: row[place] for place in key_places(work.schema)}
    inserted = not bits >> len(work.schema.columns) & 1
    what = "an insert leaves columns out" if inserted else "a change leaves columns out, and its row does not exist"
    why = "the row image is MINIMAL or NOBLOB and the log does not have defaults" if inserted else ""
    if not inserted and row._seqno <= exact_at and work.target < exact_at:
        return RetryableError(
            "a key changed while the initial load read the table, and the log is not staged up to the end of the load",
            why=f"the row with {key} may have been read before or after the change",
            hint="loader run",
            table=work.name,
            position=work.position_of(row._seqno),
        )
    return UnsupportedError(
        what,
        why=f"columns {', '.join(names)} of the row with {key}" + (f": {why}" if why else ""),
        hint=f"set binlog_row_image=FULL on the server, then: {work.name.load_again}",
        table=work.name,
        position=work.position_of(row._seqno),
    )


def partial_replay_error(table: TableName) -> UnsupportedError:
    """Return the error of a replay whose records leave columns out: it does not know the rows at its start."""
    return UnsupportedError(
        "row images leave columns out, whose values at the start of the replay are unknown",
        why="binlog_row_image was not FULL on the server",
        hint=table.load_again,
        table=table,
    )


def _check_logged(known: DataFrame, work: Work, base: MergeBase) -> None:
    """Verify that no record leaves out a column that may have changed.

    Raises:
        UnsupportedError: one may have changed, or the generated columns are unknown.
    """
    if base.logs_all_changes:
        return
    hint = work.name.load_again
    if base.unlogged is None:
        raise UnsupportedError(
            "row images leave columns out, and it is not known which of them are generated",
            why="MariaDB leaves generated columns out of updates, whether or not they change",
            hint=hint,
            table=work.name,
        )
    names = [column.name for column in work.schema.columns]
    used = sf.col("_op") != "D" if work.rule.mode == "mirror" else sf.lit(True)
    generated = [used & is_absent(names.index(name)) for name in base.unlogged]
    any_column = (sf.col("_op") != "D") & any_of(is_absent(number) for number in _column_numbers(work))
    first_seqnos = (sf.min(sf.when(absent, sf.col("_seqno"))) for absent in (*generated, any_column))
    *first_generated, first_of_any = known.agg(*first_seqnos).collect()[0]
    for name, seqno in zip(base.unlogged, first_generated, strict=True):
        if seqno is not None:
            raise UnsupportedError(
                "the log leaves a generated column out of changes, whether or not it changes",
                hint=f"{work.name.exclusion}; or make it a column that the application writes, then: {hint}",
                table=work.name,
                column=name,
                position=work.position_of(seqno),
            )
    if first_of_any is not None:
        raise UnsupportedError(
            "row images leave columns out, and MariaDB also leaves out columns that changed",
            why="it logs a REPLACE of an existing row without the columns that the statement sets to their defaults",
            hint=f"set binlog_row_image=FULL on the server, then: {hint}",
            table=work.name,
            position=work.position_of(first_of_any),
        )


def _column_numbers(work: Work) -> range:
    return range(len(work.schema.columns))


def _has_unknown_value(work: Work) -> Expression:
    """Return whether a value is still unknown."""
    return any_of(sf.col(f"v{n}").isNull() for n in _column_numbers(work))


def _has_one_row(work: Work, base: MergeBase, lives: int) -> Expression:
    """Return whether the table's row of a key, if any, is certainly of the life that is looked at.

    `lives`: how many lives of the key that life had begun while the load read. More of them began later.
    """
    return sf.lit(base.exact_at <= work.target) & (sf.col("begun") == lives)


def _is_moved_row(work: Work, base: MergeBase) -> Expression:
    """Return whether a life began with a change of the key that the load may have read: no other row had this key."""
    if work.rule.mode == "history":  # which holds what a row was at the change
        return sf.lit(False)
    return (sf.col("life") == 1) & ~sf.col("inserted") & _has_one_row(work, base, 1)


def _assign_lives(records: DataFrame, work: Work, exact_at: int) -> DataFrame:
    """Return the records with their lives.

    Columns: `life` is the number of the life of a key. `origin` is the life under another key that it continues.
    `inserted` is whether it began with an insert of the source. `begun` is how many lives of the key began up to
    `exact_at`. `v0`, ... are structs of the values that are known in the life, else NULL.
    """
    keys = key_places(work.schema)
    order = ("_seqno", "_row_offset")
    upto = Window.partitionBy(*keys).orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    before = Window.partitionBy(*keys).orderBy(*order).rowsBetween(Window.unboundedPreceding, -1)
    life = sf.count_if(sf.col("_op") == "I").over(upto) + sf.count_if(sf.col("_op") == "D").over(before)
    is_early_insert = (sf.col("_op") == "I") & (sf.col("_seqno") <= exact_at)
    begun = sf.count_if(is_early_insert).over(Window.partitionBy(*keys))
    within = Window.partitionBy(*keys, "life").orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    values = {}
    for n, place in enumerate(places(work.schema)):
        known = sf.when(~is_absent(n), sf.struct(sf.col(place).alias("value")))
        values[f"v{n}"] = sf.last(known, ignorenulls=True).over(within)
    follows = is_absent(len(work.schema.columns))
    previous = sf.lag(sf.struct(*keys, "life")).over(Window.partitionBy("_seqno").orderBy("_row_offset"))
    return (
        records.withColumn("_absent", sf.coalesce("_absent", sf.lit("")))
        .withColumn("life", life)
        .withColumn("begun", begun)
        .withColumn("origin", sf.when(follows, previous))
        .withColumn("inserted", sf.first((sf.col("_op") == "I") & ~follows).over(within))
        .withColumn("origin", sf.first("origin").over(within))
        .withColumns(values)
    )


def _rows_in_table(session: SparkSession, known: DataFrame, work: Work, base: MergeBase, within: str) -> DataFrame:
    """Return the table's rows for keys with unknown values.

    Columns: the key as staged text, `b0`, ... as structs of staged text, and `there`, which is true.
    """
    keys = key_places(work.schema)
    columns = dict(zip(places(work.schema), work.schema.columns, strict=True))
    has_row = (sf.col("life") == 0) | _is_moved_row(work, base)
    wanted = known.where(has_row & _has_unknown_value(work)).select(*keys).distinct()
    typed_keys = (typed_value(columns[key], sf.col(key), work.name).alias(f"k_{key}") for key in keys)
    table = session.sql(f"SELECT * FROM {base.relation}").where(within)
    if work.rule.mode == "soft_delete":
        table = table.where(~sf.col(identifier(work.rule.deleted_column)))
    same = all_of(
        sf.col(f"k.k_{key}") == sf.col(f"w.{identifier(work.layout.name(columns[key].name))}") for key in keys
    )
    found = table.alias("w").join(sf.broadcast(wanted.select(*keys, *typed_keys)).alias("k"), same)
    # Only qualified columns are selected: a column of the source may have any name, such as c0.
    own = [sf.col(f"k.{key}") for key in keys]
    texts = [sf.struct(_text(column, work).alias("value")).alias(f"b{n}") for n, column in enumerate(columns.values())]
    there = sf.lit(True).alias("there")
    if work.rule.mode != "history":
        return found.select(*own, *texts, there)
    rows = found.select(*own, *texts, there, *_nth_of_history(work))
    return rows.where((sf.col("nth") == 1) & (sf.col("op") != "D")).drop("nth", "op")


def _nth_of_history(work: Work) -> tuple[Expression, Expression]:
    """Return the number of each change of a key in a history, from 1 for the newest, and its op."""
    rule = work.rule
    order = [sf.col(f"w.{identifier(name)}").desc() for name in (rule.seqno_column, rule.row_offset_column)]
    last = sf.row_number().over(Window.partitionBy(*(f"k.{key}" for key in key_places(work.schema))).orderBy(*order))
    return last.alias("nth"), sf.col(f"w.{identifier(rule.op_column)}").alias("op")


def _text(column: Column, work: Work) -> Expression:
    """Return a value of the table as staged text."""
    name = work.layout.name(column.name)
    text = staged_text(column, sf.col(f"w.{identifier(name)}"))
    kept_apart = column.name in work.layout.lenient_columns.values() and work.layout.text_columns
    return sf.coalesce(text, sf.col(f"w.{identifier(name + '__text')}")) if kept_apart else text


def _follow_key_changes(filled: DataFrame, work: Work) -> DataFrame:
    """Take the values that are unknown in a life, and whether it was inserted, from the life that it continues.

    Lives that continue each other form a chain. Each round joins pieces of twice the length.
    """
    if filled.where(sf.col("origin").isNotNull() & _has_unknown_value(work)).isEmpty():
        return filled
    keys = key_places(work.schema)
    names = [f"v{n}" for n in _column_numbers(work)]
    passed = sf.struct(*(sf.col(f"p{n}").alias(f"v{n}") for n in _column_numbers(work)))
    lives = filled.groupBy(*keys, "life").agg(
        sf.max_by(passed, sf.struct("_seqno", "_row_offset")).alias("row"),
        sf.first("origin").alias("origin"),
        sf.first("inserted").alias("inserted"),
    )
    lives = lives.select(sf.struct(*keys, "life").alias("id"), "row.*", "origin", "inserted")
    # A life with all values needs no other life.
    lives = lives.withColumn("origin", sf.when(_has_unknown_value(work), sf.col("origin"))).localCheckpoint()
    taken = {name: sf.coalesce(name, f"o_{name}") for name in names}
    taken["inserted"] = sf.col("inserted") | sf.coalesce("o_inserted", sf.lit(False))
    while not lives.where(sf.col("origin").isNotNull()).isEmpty():
        older = lives.select(*(sf.col(name).alias(f"o_{name}") for name in ("id", *taken, "origin")))
        joined = lives.join(older, lives["origin"] == older["o_id"], "left")
        values = [value.alias(name) for name, value in taken.items()]
        lives = joined.select("id", *values, sf.col("o_origin").alias("origin")).localCheckpoint()
    ends = lives.select("id", *(sf.col(name).alias(f"o_{name}") for name in taken))
    return filled.join(ends, filled["origin"] == ends["id"], "left").withColumns(taken)
