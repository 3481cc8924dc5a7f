"""The smallest and the largest key among records."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from loader.native_collapse.key_ends import KeyEnds, count_deleted, join_ends, key_ends
from loader.native_collapse.last_records import NotSupportedNatively


def records(*keys: Any, kind: pa.DataType) -> pa.Table:
    return pa.table({"c0": pa.array(keys, kind), "_op": ["D", *["U"] * len(keys)][: len(keys)]})


def test_the_ends_of_the_first_key_column() -> None:
    found = records(3, 1, 2, kind=pa.int32())
    assert key_ends(found, ["c0", "_op"]) == KeyEnds(1, 3)
    assert count_deleted(found) == 1
    nothing = records(kind=pa.int32())
    assert (key_ends(nothing, ["c0"]), count_deleted(nothing)) == (KeyEnds(None, None), 0)


def test_what_is_left_to_spark_sql() -> None:
    with pytest.raises(NotSupportedNatively, match="a key has a NULL"):
        key_ends(records(1, None, kind=pa.int32()), ["c0"])
    before_year_1 = pa.table({"c0": pa.array([-719163], pa.int32()).cast(pa.date32()), "_op": ["I"]})
    with pytest.raises(NotSupportedNatively, match="a key is of the year 0"):
        key_ends(before_year_1, ["c0"])


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (-2, 10, ("-2", "10")),
        (b"\x00", b"\xff", ("00", "ff")),
        (date(1, 1, 1), date(2026, 1, 1), ("0001-01-01", "2026-01-01")),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), ("2026-01-01 00:00:00", "2026-01-02 03:04:05.000006")),
        (Decimal("-1.50"), Decimal("1.00"), ("-1.50", "1.00")),
        ("a", "é", ("a", "é")),
    ],
)  # fmt: skip
def test_the_ends_of_all_parts_as_texts(low: Any, high: Any, texts: tuple[str, str]) -> None:
    parts = [KeyEnds(high, high), KeyEnds(None, None), KeyEnds(low, low)]
    assert join_ends(parts) == texts
    assert join_ends([KeyEnds(None, None)]) == join_ends([]) == (None, None)
