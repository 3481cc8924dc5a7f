"""From staged CSV to rows: the reader's settings, the undoing of escapes, and the casts.

Format: DESIGN, "Staging format, version 1". Inside these frames the table's columns have the names `c0`, `c1`, ... by
their place, so that no name of the source can meet one of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from loader.errors import StagedDataError
from loader.materialise.plan.frame_columns import places
from loader.model.table import Column, TableName, TableSchema
from loader.types.column_type import Form
from loader.types.warehouse import form, spark_type

_META = ("_op", "_seqno", "_row_offset", "_committed_at", "_absent")

_DIALECT = {
    "mode": "FAILFAST",
    "encoding": "UTF-8",
    "sep": ",",
    "lineSep": "\n",
    "quote": '"',
    "escape": '"',
    "nullValue": "\\N",
    "emptyValue": "",
    "comment": "",
    "header": "false",
    "multiLine": "false",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "maxCharsPerColumn": "-1",
    # With pruning a line of too few or too many values passes unseen.
    "columnPruning": "false",
}

_NOT_THE_FORMAT = ("MALFORMED_CSV_RECORD", "MALFORMED_RECORD", "TextParsingException", "CAST_INVALID_INPUT")


def read_staged(session: SparkSession, uris: Sequence[str], schema: TableSchema) -> DataFrame:
    """Every line of the files.

    Columns: `_op`, `_seqno` and `_row_offset` as bigint, `_committed_at`, `_absent`, then `c0`... as staged text.
    """
    names = (*_META, *places(schema))
    layout = ", ".join(f"`{name}` string" for name in names)
    reader = session.read.format("csv").schema(layout).options(**_DIALECT, maxColumns=str(len(names)))
    lines = reader.load(list(uris)) if uris else session.createDataFrame([], layout)
    return lines.withColumns({name: sf.col(name).cast("bigint") for name in ("_seqno", "_row_offset")})


def typed_value(column: Column, raw: Expression, table: TableName) -> Expression:
    """The value of a column's staged text, NULL when the text does not fit the type.

    Raises:
        UnsupportedError: a type that the loader does not cover.
    """
    shape = form(column)
    if shape is Form.TEXT:
        return unescape(raw)
    if shape is Form.HEX:
        return sf.unhex(raw)
    kind = spark_type(column, table)
    return raw if kind == "string" else raw.try_cast(kind)


def may_not_fit(column: Column) -> bool:
    """Whether `typed` can give NULL for a text that is not NULL."""
    return form(column) is not Form.TEXT and spark_type(column) != "string"


def unescape(raw: Expression) -> Expression:
    r"""Text with `\\`, `\n`, `\r` and `\0` undone; `\x` and hex digits, which are bytes and no text, stay as they are.

    Staged text holds no newline, so one can stand for the escaped backslash meanwhile; once `\0`, `\r` and `\n` are
    done, every backslash left stands for a newline and every newline for a backslash, and they change places.
    """
    steps = (("\\\\", "\n"), ("\\0", "\x00"), ("\\r", "\r"), ("\\n", "\\"))
    undone = reduce(lambda text, step: sf.replace(text, sf.lit(step[0]), sf.lit(step[1])), steps, raw)
    escaped = (sf.instr(raw, "\\") > 0) & ~sf.startswith(raw, sf.lit("\\x"))
    return sf.when(escaped, sf.translate(undone, "\n\\", "\\\n")).otherwise(raw)


def escape(text: str) -> str:
    """Text as it is staged, but for the quotes around it; the inverse of `unescaped`."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")


def staged_text(column: Column, value: Expression) -> Expression:
    """The staged text of a value, which `typed` gives back."""
    shape = form(column)
    if shape is Form.HEX:
        return sf.lower(sf.hex(value))
    if shape is Form.TEXT:
        steps = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0"))
        return reduce(lambda text, step: sf.replace(text, sf.lit(step[0]), sf.lit(step[1])), steps, value)
    return value.cast("string")


def is_absent(index: int) -> Expression:
    """Whether the bit of a column is set in `_absent`, which is hex."""
    digits = sf.substring("_absent", index // 8 * 2 + 1, 2)
    byte = sf.when(digits != "", sf.conv(digits, 16, 10).cast("int")).otherwise(0)
    return sf.getbit(byte, sf.lit(index % 8)) == 1


def format_error(error: Exception, table: TableName) -> StagedDataError | None:
    """The loader's word for what Spark raises on a line that is not in the dialect; None for any other failure."""
    text = str(error)
    if not any(sign in text for sign in _NOT_THE_FORMAT):
        return None
    lines = [line for line in text.splitlines() if "reading file" in line or any(s in line for s in _NOT_THE_FORMAT)]
    return StagedDataError(
        "a staged file is not in the staging format",
        why="\n".join(dict.fromkeys(line.strip() for line in lines)),
        hint="extract the interval again with the loader version of its manifest",
        table=table,
    )
