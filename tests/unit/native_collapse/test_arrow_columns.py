"""Staged lines as columns: every value comes back, and what does not fit is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.model.table import Column, TableName, TableSchema
from loader.native_collapse.arrow_columns import read_columns

TEXT, BLOB = Column("v", "text", charset="utf8mb4"), Column("v", "blob")


def read(column: Column, *texts: str) -> list[Any]:
    data = "".join(f"I,5,{place},2026-01-02 03:04:05.678901,,{text}\n" for place, text in enumerate(texts))
    schema = TableSchema(TableName("shop", "t"), (column,), ())
    table = read_columns(np.frombuffer(data.encode(), np.uint8).copy(), schema)
    assert table["_op"].to_pylist() == ["I"] * len(texts)
    assert table["_seqno"].to_pylist() == [5] * len(texts)
    assert table["_row_offset"].to_pylist() == list(range(len(texts)))
    assert set(table["_committed_at"].to_pylist()) <= {datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)}
    return table["c0"].to_pylist()


def staged(text: str) -> str:
    for character, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0"), ('"', '""')):
        text = text.replace(character, escape)
    return f'"{text}"'


@given(st.lists(st.none() | st.text(alphabet=st.sampled_from('\\nr0x"\n\r\0,Né😀') | st.characters(codec="utf-8"))))
def test_every_text_comes_back(texts: list[str | None]) -> None:
    # What begins so is bytes that were no text, and staged so by no other.
    texts = [text for text in texts if text is None or not text.startswith("\\x")]
    assert read(TEXT, *("\\N" if text is None else staged(text) for text in texts)) == texts


def test_bytes_that_are_no_text_stay_as_they_are_staged() -> None:
    assert read(TEXT, '"\\x005c6e"', '"a\\\\x00"') == ["\\x005c6e", "a\\x00"]


@given(st.lists(st.none() | st.binary()))
def test_all_bytes_come_back(values: list[bytes | None]) -> None:
    assert read(BLOB, *("\\N" if value is None else f'"{value.hex()}"' for value in values)) == values


@pytest.mark.parametrize(
    ("column", "texts", "values"),
    [
        (Column("v", "tinyint"), ["-128", "127", "\\N"], [-128, 127, None]),
        (Column("v", "int", unsigned=True), ["0", "4294967295"], [0, 4294967295]),
        (Column("v", "bigint"), ["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1]),
        (Column("v", "bigint", unsigned=True), ["0", "18446744073709551615"], [Decimal(0), Decimal(2**64 - 1)]),
        (Column("v", "bit", size=64), ["18446744073709551615"], [Decimal(2**64 - 1)]),
        (Column("v", "year"), ["0000", "1901", "2155"], [0, 1901, 2155]),
        (Column("v", "decimal", size=5, scale=2), ["-999.99", "0.00"], [Decimal("-999.99"), Decimal("0.00")]),
        (Column("v", "decimal", size=38, scale=30), ["1." + "0" * 29 + "1"], [Decimal("1." + "0" * 29 + "1")]),
        (Column("v", "decimal", size=65, scale=0), ["9" * 65], ["9" * 65]),
        (Column("v", "double"), ["1e-323", "-1.7976931348623157e308", "0.1"], [1e-323, -1.7976931348623157e308, 0.1]),
        (Column("v", "float"), ["0.5", "3.4028235e38"], [0.5, 3.4028234663852886e38]),
        (
            Column("v", "date"),
            ["0001-01-01", "1582-10-10", "9999-12-31"],
            [date(1, 1, 1), date(1582, 10, 10), date.max],
        ),
        (
            Column("v", "datetime", size=6),
            ["0001-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"],
            [datetime(1, 1, 1, 0, 0, 0, 1), datetime.max],
        ),
        (Column("v", "datetime"), ["2026-01-02 03:04:05", "\\N"], [datetime(2026, 1, 2, 3, 4, 5), None]),
        (Column("v", "timestamp", size=3), ["2026-01-02 03:04:05.600"], [datetime(2026, 1, 2, 3, 4, 5, 600000, UTC)]),
        (Column("v", "time", size=2), ["-838:59:59.00"], ["-838:59:59.00"]),
        (Column("v", "set", labels=("a", "b")), ['"a,b"', '""'], ["a,b", ""]),
        (Column("v", "json"), ['"{""a"": ""\\\\n""}"'], ['{"a": "\\n"}']),
    ],
)
def test_values_of_a_type(column: Column, texts: list[str], values: list[Any]) -> None:
    assert read(column, *texts) == values


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (Column("v", "int"), "2147483648"),
        (Column("v", "int"), '""'),
        (Column("v", "decimal", size=5, scale=2), "1000.00"),
        (Column("v", "decimal", size=5, scale=2), "0.001"),
        (Column("v", "date"), "0000-00-00"),
        (Column("v", "date"), "2026-02-30"),
        (Column("v", "datetime"), "2026-00-01 00:00:00"),
        (BLOB, '"abc"'),
        (BLOB, '"0G"'),
        (TEXT, '"a",1'),
    ],
)
def test_what_does_not_fit_is_refused(column: Column, text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        read(column, text)


def test_no_lines() -> None:
    assert read(TEXT) == []
    assert read(BLOB) == []


def test_a_line_that_is_longer_than_a_block() -> None:
    text = "x" * (40 << 20)
    assert read(TEXT, '"a"', f'"{text}"', '"b"') == ["a", text, "b"]
