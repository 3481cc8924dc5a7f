"""Both kernels give the same text for the extreme values of every column type, and for the column after it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from loader.initial_load.result_set import program as result_set
from loader.model.table import Column, TableName, TableSchema
from loader.types.catalogue import TYPES
from loader.types.column_type import ColumnType, Encoding, Form
from tests.unit.binlog import fields
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.reading import staged
from tests.unit.initial_load.packets import END, packed, packet, row, stage

_DOCUMENT = b"\0\1\0\x0c\0\x0b\0\1\0\x05\1\0a"  # {"a": 1}
_LABELS = ("a", "b")


class Example(NamedTuple):
    """A value: its column and value in a log, its bytes in a result of a query, and its staged text."""

    field: fields.Field
    value: Any
    result: bytes
    text: str


def _whole(size: int, form: str) -> Callable[[], list[Example]]:
    low, high = -(1 << 8 * size - 1), (1 << 8 * size) - 1
    column, unsigned = fields.integer("c", size), fields.integer("c", size, unsigned=True)
    return lambda: [
        Example(column, low, struct.pack(f"<{form}", low), str(low)),
        Example(unsigned, high, struct.pack(f"<{form.upper()}", high), str(high)),
    ]


def _string(field: fields.Field, value: str | bytes, text: str) -> Callable[[], list[Example]]:
    return lambda: [Example(field, value, packed(value.encode() if isinstance(value, str) else value), text)]


_TEXTS: dict[str, fields.Field] = {
    "char": fields.char("c"), "varchar": fields.varchar("c"),
    **{f"{name}text": fields.blob("c", size, fields.UTF8MB4) for size, name in enumerate(("tiny", "", "medium", "long"), 1)},
}  # fmt: skip
_BYTES: dict[str, fields.Field] = {
    "binary": fields.char("c", 2, fields.BINARY), "varbinary": fields.varchar("c", 9, fields.BINARY),
    **{f"{name}blob": fields.blob("c", size) for size, name in enumerate(("tiny", "", "medium", "long"), 1)},
    "geometry": fields.geometry("c"),
}  # fmt: skip
EXAMPLES: dict[str, Callable[[], list[Example]]] = {
    "tinyint": _whole(1, "b"), "smallint": _whole(2, "h"), "int": _whole(4, "i"), "bigint": _whole(8, "q"),
    "mediumint": lambda: [
        Example(fields.integer("c", 3), -(1 << 23), struct.pack("<i", -(1 << 23)), "-8388608"),
        Example(fields.integer("c", 3, unsigned=True), (1 << 24) - 1, struct.pack("<I", (1 << 24) - 1), "16777215"),
    ],
    "float": lambda: [Example(fields.floating("c"), 0xBFC00000, struct.pack("<f", -1.5), "-1.5")],
    "double": lambda: [Example(fields.floating("c", 8), 0x3FB999999999999A, struct.pack("<d", 0.1), "0.1")],
    "decimal": lambda: [
        Example(fields.decimal("c", 9, 2), Decimal("-1234567.89"), packed(b"-1234567.89"), "-1234567.89")
    ],
    "bit": lambda: [Example(fields.bit("c", 9), 511, packed(b"\1\xff"), "511")],
    "year": lambda: [Example(fields.year("c"), 2155, struct.pack("<H", 2155), "2155")],
    "date": lambda: [Example(fields.date("c"), (9999, 12, 31), packed(struct.pack("<HBB", 9999, 12, 31)), "9999-12-31")],
    "time": lambda: [
        Example(fields.time("c"), (True, 838, 59, 59, 0), packed(struct.pack("<BIBBB", 1, 34, 22, 59, 59)), "-838:59:59")
    ],
    "datetime": lambda: [
        Example(fields.datetime("c"), (9999, 12, 31, 23, 59, 59, 0),
                packed(struct.pack("<HBBBBB", 9999, 12, 31, 23, 59, 59)), "9999-12-31 23:59:59")
    ],
    "timestamp": lambda: [
        Example(fields.timestamp("c"), (2**31 - 1, 0),
                packed(struct.pack("<HBBBBB", 2038, 1, 19, 3, 14, 7)), "2038-01-19 03:14:07")
    ],
    "enum": lambda: [Example(fields.enum("c", _LABELS), 2, packed(b"b"), "b")],
    "set": lambda: [Example(fields.set_of("c", _LABELS), 3, packed(b"a,b"), "a,b")],
    "json": lambda: [Example(fields.json("c"), _DOCUMENT, packed(b'{"a": 1}'), '{"a": 1}')],
    "vector": lambda: [Example(fields.vector("c"), [1, -2.5], packed(struct.pack("<2f", 1, -2.5)), "[1,-2.5]")],
    **{name: _string(field, "ü\0", "ü\0") for name, field in _TEXTS.items()},
    **{name: _string(field, b"\0\xff", "00ff") for name, field in _BYTES.items()},
}  # fmt: skip
ADDRESSES = {known.name for known in TYPES if known.encoding in {Encoding.UUID, Encoding.INET4, Encoding.INET6}}
"""The log has them as BINARY: tests/unit/binlog/values/test_addresses.py."""


def test_every_type_has_an_example() -> None:
    assert set(EXAMPLES) | ADDRESSES == {known.name for known in TYPES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_row_kernel(name: str) -> None:
    for example in EXAMPLES[name]():
        table = fields.Table("s", "t", (example.field, fields.integer("after", unsigned=True)), key=())
        log = LogBuilder().insert(table, (example.value, 2**32 - 1))
        ((*_, text, after),) = staged(bytes(log.data)).of("s.t")
        assert (text, after) == (example.text, "4294967295")


@pytest.mark.parametrize("known", [one for one in TYPES if one.name in EXAMPLES], ids=lambda one: one.name)
def test_the_chunk_kernel(known: ColumnType) -> None:
    for example in EXAMPLES[known.name]():
        column = Column("c", known.name, unsigned=example.field.unsigned, **_PARAMETERS.get(known.name, {}))
        schema = TableSchema(TableName("s", "t"), (column, Column("after", "int", unsigned=True)), ())
        program = result_set.compile_program(schema, cast("Any", [_sent(known, column), _INT]))
        data = packet(row(example.result, struct.pack("<I", 2**32 - 1))) + END
        _, line, _ = stage(data, program.columns)
        quoted = known.form in {Form.TEXT, Form.HEX}
        text = example.text.replace('"', '""').replace("\0", "\\0")
        assert line.decode() == (f'"{text}"' if quoted else text) + ",4294967295\n"


_PARAMETERS: dict[str, dict[str, Any]] = {
    "decimal": {"size": 9, "scale": 2}, "bit": {"size": 9}, "binary": {"size": 2},
    "enum": {"labels": _LABELS, "charset": "utf8mb4"}, "set": {"labels": _LABELS, "charset": "utf8mb4"},
    **{name: {"charset": "utf8mb4"} for name in _TEXTS},
}  # fmt: skip


def _sent(known: ColumnType, column: Column) -> SimpleNamespace:
    """What the server says of a column in the result of a query."""
    return SimpleNamespace(
        name="c",
        type_code=known.result_type or 253,
        flags={"enum": 256, "set": 2048}.get(known.name, 0) | (32 if column.unsigned else 0),
        scale=column.scale,
        length=column.size,
        charsetnr=63 if known.form is Form.HEX else 45,
    )


_INT = SimpleNamespace(name="after", type_code=3, flags=32, scale=0, length=10, charsetnr=63)
