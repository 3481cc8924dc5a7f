"""Reads staged CSV with Spark: settings of the reader, escapes and casts.

For the format see DESIGN, "Staging format, version 1". In the frames, the columns of the table have the names `c0`,
`c1`, ... in column order: see `loader.materialise.plan.frame_columns`.
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
    # With pruning, Spark accepts a line with too few or too many values.
    "columnPruning": "false",
}

_NOT_THE_FORMAT = ("MALFORMED_CSV_RECORD", "MALFORMED_RECORD", "TextParsingException", "CAST_INVALID_INPUT")


def read_staged(session: SparkSession, uris: Sequence[str], schema: TableSchema) -> DataFrame:
    """Return every line of the files.

    Columns: `_op`, `_seqno` and `_row_offset` as bigint, `_committed_at`, `_absent`, and `c0`, ... as staged text.
    """
    names = (*_META, *places(schema))
    layout = ", ".join(f"`{name}` string" for name in names)
    reader = session.read.format("csv").schema(layout).options(**_DIALECT, maxColumns=str(len(names)))
    lines = reader.load(list(uris)) if uris else session.createDataFrame([], layout)
    return lines.withColumns({name: sf.col(name).cast("bigint") for name in ("_seqno", "_row_offset")})


def typed_value(column: Column, raw: Expression, table: TableName) -> Expression:
    """Return the value of a column's staged text, or NULL if the text does not fit the type.

    Raises:
        UnsupportedError: the loader does not support the type.
    """
    shape = form(column)
    if shape is Form.TEXT:
        return unescape(raw)
    if shape is Form.HEX:
        return sf.unhex(raw)
    kind = spark_type(column, table)
    return raw if kind == "string" else raw.try_cast(kind)


def may_not_fit(column: Column) -> bool:
    """Return whether `typed_value` can give NULL for a text that is not NULL."""
    return form(column) is not Form.TEXT and spark_type(column) != "string"


def unescape(raw: Expression) -> Expression:
    r"""Return the text with `\\`, `\n`, `\r` and `\0` unescaped. Text that begins with `\x` is hex and stays unchanged.

    Staged text has no newline characters. So an escaped backslash becomes a newline first, and an escaped newline
    becomes a backslash. At the end, all newlines and backslashes are swapped.
    """
    steps = (("\\\\", "\n"), ("\\0", "\x00"), ("\\r", "\r"), ("\\n", "\\"))
    undone = reduce(lambda text, step: sf.replace(text, sf.lit(step[0]), sf.lit(step[1])), steps, raw)
    escaped = (sf.instr(raw, "\\") > 0) & ~sf.startswith(raw, sf.lit("\\x"))
    return sf.when(escaped, sf.translate(undone, "\n\\", "\\\n")).otherwise(raw)


def escape(text: str) -> str:
    """Return text as it is staged, without the quotes around it. This is the inverse of `unescape`."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")


def staged_text(column: Column, value: Expression) -> Expression:
    """Return the staged text of a value. This is the inverse of `typed_value`."""
    shape = form(column)
    if shape is Form.HEX:
        return sf.lower(sf.hex(value))
    if shape is Form.TEXT:
        steps = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0"))
        return reduce(lambda text, step: sf.replace(text, sf.lit(step[0]), sf.lit(step[1])), steps, value)
    return value.cast("string")


def is_absent(index: int) -> Expression:
    """Return whether the bit of a column is set in the hex bitmap `_absent`."""
    digits = sf.substring("_absent", index // 8 * 2 + 1, 2)
    byte = sf.when(digits != "", sf.conv(digits, 16, 10).cast("int")).otherwise(0)
    return sf.getbit(byte, sf.lit(index % 8)) == 1


def hex_bitmap(bits: Sequence[Expression]) -> Expression:
    """Return conditions as a hex bitmap, from its first bit on. This is the inverse of `is_absent`."""
    values = [sf.shiftleft(bit.cast("int"), n % 8) for n, bit in enumerate(bits)]
    octets = [sum(values[i : i + 8], sf.lit(0)) for i in range(0, len(values), 8)]
    return sf.concat(*(sf.lower(sf.lpad(sf.hex(octet), 2, "0")) for octet in octets))


def format_error(error: Exception, table: TableName) -> StagedDataError | None:
    """Return the error for a line that is not in the staging format; None if Spark failed for another reason."""
    text = str(error)
    if not any(sign in text for sign in _NOT_THE_FORMAT):
        return None
    lines = [line for line in text.splitlines() if "reading file" in line or any(s in line for s in _NOT_THE_FORMAT)]
    return StagedDataError(
        "a staged file is not in the staging format",
        why="\n".join(dict.fromkeys(line.strip() for line in lines)),
        hint="loader staged restore START, with the start of its interval (list them with: loader intervals); "
        f"or {table.load_again}",
        table=table,
    )
