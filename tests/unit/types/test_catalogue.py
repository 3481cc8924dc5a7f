"""Every column type has all its parts: in DDL, the codec, the initial load, the merge, verification and the library."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from loader.binlog.events.table_map import TableMap
from loader.binlog.program import compile_program
from loader.cli.listing.json_lines import typed
from loader.errors import UnsupportedError
from loader.initial_load.keys import bound_expression, literal
from loader.initial_load.result_set import program as result_set
from loader.model.table import ADDRESS_BYTES, Column, TableName, TableSchema
from loader.native_collapse.arrow_columns import read_columns
from loader.reader.arrow import arrow_type
from loader.reader.values import Value
from loader.schema.changes import AddColumn, ColumnDefinition, Created
from loader.schema.constants import NotLoggedError, existing_row_value
from loader.schema.statement_reader import table_changes
from loader.schema.type_preservation import max_kept_length
from loader.types.catalogue import TYPES, type_of
from loader.types.column_type import ColumnType, Comparison, Encoding, Form, KeyBound
from loader.types.warehouse import form, spark_type
from loader.verify.expressions import comparison_of, in_warehouse, on_server

NAME = TableName("shop", "t")
NAMES = [known.name for known in TYPES]
PARAMETERS: dict[str, dict[str, Any]] = {
    "decimal": {"size": 9, "scale": 2}, "bit": {"size": 9}, "binary": {"size": 4},
    "enum": {"labels": ("a", "b"), "charset": "utf8mb4"}, "set": {"labels": ("a", "b"), "charset": "utf8mb4"},
}  # fmt: skip
ARGUMENTS = {"varchar": "(9)", "varbinary": "(9)", "enum": "('a')", "set": "('a')", "vector": "(3)"}
METADATA = {
    4: b"\4",
    5: b"\x08",
    16: b"\1\1",
    17: b"\0",
    18: b"\0",
    19: b"\0",
    242: b"\4",
    245: b"\4",
    246: b"\t\2",
    255: b"\4",
}
"""Type metadata of a table map; other types have none."""

TEXT_OF = {
    Encoding.INTEGER: "7", Encoding.FLOAT: "0.5", Encoding.DOUBLE: "0.5", Encoding.DECIMAL: "1.50", Encoding.BIT: "5",
    Encoding.YEAR: "2026", Encoding.DATE: "2026-11-21", Encoding.TIME: "-09:30:00",
    Encoding.DATETIME: "2026-11-21 09:30:00", Encoding.TIMESTAMP: "2026-11-21 09:30:00", Encoding.ENUM: "a",
    Encoding.SET: "a,b", Encoding.TEXT: "text", Encoding.BYTES: "00ff", Encoding.JSON: "{}", Encoding.VECTOR: "[1,2.5]",
    Encoding.UUID: "00000000-0000-0000-0000-000000000001", Encoding.INET4: "127.0.0.1", Encoding.INET6: "::1",
}  # fmt: skip
BOUNDS = {
    KeyBound.NUMBER: ("7", "7"), KeyBound.FLOAT: ("0.5", "0.5e0"), KeyBound.INDEX: ("1", "1"), KeyBound.YEAR: ("2026", "2026"),
    KeyBound.TEMPORAL: ("09:30:00", "'09:30:00'"), KeyBound.ADDRESS: ("127.0.0.1", "'127.0.0.1'"),
}  # fmt: skip
"""A bound, and the literal of it; of BYTES the literal depends on the character set."""


def column_of(known: ColumnType) -> Column:
    column = Column("c", known.name, **PARAMETERS.get(known.name, {}))
    return replace(column, charset="utf8mb4") if known.encoding is Encoding.TEXT else column


@pytest.fixture(params=TYPES, ids=NAMES)
def known(request: pytest.FixtureRequest) -> ColumnType:
    found: ColumnType = request.param
    return found


def schema_of(known: ColumnType) -> TableSchema:
    return TableSchema(NAME, (column_of(known),), ())


def test_names_and_words_are_of_one_type_each() -> None:
    words = [word for known in TYPES for word in known.declared]
    assert len(set(NAMES)) == len(NAMES)
    assert len(set(words)) == len(words)
    assert len({known.log_type for known in TYPES if known.log_type}) == sum(known.log_type > 0 for known in TYPES)


def test_nothing_is_chosen_by_no_type() -> None:
    assert {known.encoding for known in TYPES} == set(Encoding)
    assert {known.form for known in TYPES} == set(Form)
    assert {known.key_bound for known in TYPES} == set(KeyBound)
    assert {known.comparison for known in TYPES} == set(Comparison)


def test_a_type_of_no_record_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="column type xmltype is not supported") as caught:
        type_of(Column("c", "xmltype"), NAME)
    assert caught.value.where == {"table": "shop.t", "column": "c"}


def test_its_words_are_read_from_ddl(known: ColumnType) -> None:
    assert known.declared
    for word in known.declared:
        text = f"CREATE TABLE t (c {word}{ARGUMENTS.get(known.name, '')})"
        (made,) = table_changes(text, "shop", 0, mariadb=False)
        assert isinstance(made, Created)
        assert made.defines is not None, text
        (added,) = made.defines
        assert isinstance(added, AddColumn)
        assert added.definition.type == known.name, text


def test_the_log_has_its_number(known: ColumnType) -> None:
    if known.log_type and known.encoding not in {Encoding.ENUM, Encoding.SET}:
        found = TableMap(NAME, bytes([known.log_type]), METADATA.get(known.log_type, b""), b"")
        ((column,), _) = found.schema(nameless=True)[0].columns, None
        assert column.type == known.name


def test_the_row_kernel_has_an_operation_for_it(known: ColumnType) -> None:
    fixed = known.log_bytes or known.name in {"decimal", "bit", "enum", "set"}
    program = compile_program(schema_of(known), (0 if fixed else 2,))
    assert program.columns.shape == (1, 6)
    assert program.columns[0, 2] >= known.log_bytes


def test_the_chunk_kernel_has_an_operation_for_it(known: ColumnType) -> None:
    column = column_of(known)
    field = SimpleNamespace(
        name="c",
        type_code=known.result_type or 253,
        flags={"enum": 256, "set": 2048}.get(known.name, 0),
        scale=column.scale or (column.size if known.form is Form.TEMPORAL else 0),
        length=column.size,
        charsetnr=63 if known.form is Form.HEX else 45,
    )
    program = result_set.compile_program(schema_of(known), cast("Any", [field]))
    assert program.columns[0, 1] == known.result_bytes


def test_it_has_a_type_in_the_warehouse_that_arrow_reads(known: ColumnType) -> None:
    assert form(column_of(known)) is known.form
    assert spark_type(column_of(known)) == known.spark(column_of(known))
    table = read_columns(np.zeros(0, np.uint8), schema_of(known))
    assert table.column_names[-1] == "c0"


def test_a_key_of_it_has_bounds(known: ColumnType) -> None:
    column = column_of(known)
    assert "`c`" in bound_expression(column)
    hexed = "_utf8mb4 X'61'" if column.charset else "X'61'"
    text, expected = BOUNDS.get(known.key_bound, ("61", hexed))
    assert literal(column, text) == expected


def test_verification_has_its_text_on_both_sides(known: ColumnType) -> None:
    assert "`c`" in on_server(column_of(known))
    assert "`c`" in in_warehouse(column_of(known))
    assert comparison_of(column_of(known)) is known.comparison


def test_the_library_has_a_python_value_for_it(known: ColumnType) -> None:
    value = Value(column_of(known), TEXT_OF[known.encoding]).native()
    assert isinstance(value, str) == (known.form is Form.TEXT and known.name != "set")


def test_arrow_and_json_have_its_python_value(known: ColumnType) -> None:
    value = Value(column_of(known), TEXT_OF[known.encoding])
    native = value.native()
    plain = sorted(native) if isinstance(native, frozenset) else native
    assert pa.array([plain], arrow_type(pa, column_of(known))).to_pylist() == [plain]
    assert isinstance(typed(value), int) == isinstance(native, int)
    assert isinstance(typed(value), float) == isinstance(native, float)


@pytest.mark.parametrize(
    "files", ["tests/integration/types/*.py", "tests/integration/schema/*.py", "docs/reference/staging-format.md"]
)
def test_the_suites_on_real_servers_and_the_page_have_its_encoding(files: str, known: ColumnType) -> None:
    texts = [file.read_text(encoding="utf-8") for file in Path(__file__).resolve().parents[3].glob(files)]
    words = set(re.findall(r"\b[A-Z]\w*", " ".join(texts)))
    assert words & {word for one in TYPES if one.encoding is known.encoding for word in one.declared}


NO_DEFAULT = {"geometry", "timestamp", "vector"}


def test_it_has_a_value_in_rows_that_were_there_before_its_column(known: ColumnType) -> None:
    column = column_of(known)
    added = ColumnDefinition(
        "c", known.name, size=column.size, scale=column.scale, labels=column.labels, nullable=False
    )
    if known.name in NO_DEFAULT:
        with pytest.raises(NotLoggedError, match="implicit default"):
            existing_row_value(added, strict=True)
    else:
        assert existing_row_value(added, strict=True) is not None


LENGTH_UNKNOWN = {"vector"}


def test_its_values_stay_when_its_type_does(known: ColumnType) -> None:
    column = column_of(known)
    same = ColumnDefinition(
        "c", known.name, size=column.size, scale=column.scale, labels=column.labels, charset=column.charset, length=9
    )
    if known.name in LENGTH_UNKNOWN:
        with pytest.raises(NotLoggedError, match="vector becomes vector"):
            max_kept_length(column, same)
    else:
        assert max_kept_length(column, same) in {None, 9, 63, 16383, 4194303}


def test_addresses_have_as_many_bytes_as_the_log_has() -> None:
    addresses = {Encoding.UUID, Encoding.INET4, Encoding.INET6}
    assert {known.name for known in TYPES if known.encoding in addresses} == set(ADDRESS_BYTES)
