"""Converts staged lines to columns of the warehouse's types, with Arrow's CSV reader and the loader's kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from loader.binlog.native.buffer import Bytes
from loader.model.table import Column, TableSchema
from loader.native_collapse.staged_lines import longest
from loader.native_collapse.staged_text import unescape, unhex
from loader.types.column_type import Form
from loader.types.warehouse import form, spark_type

_META = {"_op": pa.string(), "_seqno": pa.int64(), "_row_offset": pa.int64(), "_committed_at": pa.timestamp("us")}
_DIALECT = pa.csv.ParseOptions(delimiter=",", quote_char='"', double_quote=True, escape_char=False)
_UTC = pa.timestamp("us", "UTC")
_BLOCK = 16 * 1024 * 1024
_LOOK = 1024 * 1024

_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.string(),  # of hex digits
}


def read_columns(lines: Bytes, schema: TableSchema) -> pa.Table:
    """Return `_op`, `_seqno`, `_row_offset`, `_committed_at` of the lines, and the table's columns as `c0`, `c1`, ....

    Raises:
        pyarrow.ArrowInvalid: a line is not in the staging format, or a value does not fit its column.
    """
    places = [f"c{place}" for place in range(len(schema.columns))]
    kinds = _META | {place: _type(column) for place, column in zip(places, schema.columns, strict=True)}
    table = _read(lines, [*_META, "_absent", *places], kinds) if len(lines) else pa.schema(kinds).empty_table()
    table = _replace(table, "_committed_at", table["_committed_at"].cast(_UTC))
    for place, column in zip(places, schema.columns, strict=True):
        table = _convert(table, place, column)
    return table


def _read(lines: Bytes, names: list[str], kinds: dict[str, Any]) -> pa.Table:
    # Arrow needs each line whole in one block.
    block = max(_BLOCK, longest(lines))
    return pa.csv.read_csv(
        pa.BufferReader(pa.py_buffer(lines)),
        pa.csv.ReadOptions(column_names=names, block_size=block, use_threads=False),
        _DIALECT,
        pa.csv.ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds),
            null_values=["\\N"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _type(column: Column) -> Any:
    kind = spark_type(column)
    if kind.startswith("decimal("):
        size, scale = kind[len("decimal(") : -1].split(",")
        return pa.decimal128(int(size), int(scale))
    return _TYPES[kind]


def _convert(table: pa.Table, place: str, column: Column) -> pa.Table:
    shape = form(column)
    if shape is Form.TEXT:
        return _replace(table, place, _map_chunks(table[place], _unescape))
    if shape is Form.HEX:
        return _replace(table, place, _map_chunks(table[place], _unhex))
    return _replace(table, place, table[place].cast(_UTC)) if spark_type(column) == "timestamp" else table


def _replace(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


def _map_chunks(values: pa.ChunkedArray, change: Any) -> pa.ChunkedArray:
    return pa.chunked_array([change(chunk) for chunk in values.chunks])


def _unescape(texts: pa.StringArray) -> pa.StringArray:
    data, bounds = _text_buffers(texts)
    if not _has_backslash(data[bounds[0] : bounds[-1]]):
        return texts
    data = data.copy()
    out, ends = np.empty(len(data), np.uint8), np.empty_like(bounds)
    return _build_array(texts, out[: unescape(data, bounds, out, ends)], ends, pa.string())


def _unhex(texts: pa.StringArray) -> pa.BinaryArray:
    data, bounds = _text_buffers(texts)
    out, ends = np.empty(len(data) // 2 + 1, np.uint8), np.empty_like(bounds)
    size = unhex(data.copy(), bounds, out, ends)
    if size < 0:
        raise pa.ArrowInvalid("no hex digits")
    return _build_array(texts, out[:size], ends, pa.binary())


def _has_backslash(data: Bytes) -> bool:
    """Return whether there is a backslash. The search runs in pieces, so it takes little memory."""
    return any((data[at : at + _LOOK] == ord("\\")).any() for at in range(0, len(data), _LOOK))


def _text_buffers(texts: pa.StringArray) -> tuple[Bytes, NDArray[np.int64]]:
    """Return the bytes of all texts, which must not be changed, and the bounds of each text in them."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), bounds


def _build_array(texts: pa.StringArray, data: Bytes, ends: NDArray[np.int64], kind: Any) -> Any:
    buffers = [_validity_bitmap(texts), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(texts), buffers, texts.null_count)


def _validity_bitmap(texts: pa.StringArray) -> Any:
    """Return the bitmap of the texts that are not NULL, from the first bit on; None if no text is NULL."""
    if not texts.null_count:
        return None
    flags = texts.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
