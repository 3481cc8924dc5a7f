"""Tables whose keys are floating-point numbers."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.integration.materialise.live_source import LiveSource

pytestmark = pytest.mark.integration

NUMBERS = ("0.1", "1e0 / 3", "-2e0 / 3", "1.7976931348623157e308", "2.2250738585072014e-308", "-0e0", "5", "1e15")
SINGLES = ("0.1", "1e0 / 3", "-2e0 / 3", "3.4028234663852886e38", "1.1754943508222875e-38", "-0e0", "5", "1e15")


def rows(source: LiveSource, table: str) -> Counter[tuple[str, ...]]:
    """The rows of the server with every digit of their keys, and with the sign of zero."""
    found = source.run(f"SELECT CAST(k AS DOUBLE), n FROM {table}")
    return Counter((repr(float(key)), str(number)) for key, number in found)


def differences(source: LiveSource) -> list[str]:
    found = {name: source.warehouse_rows(name) or Counter() for name in "df"}
    texts = {name: Counter((repr(key), str(number)) for key, number in found[name].elements()) for name in "df"}
    return [name for name in "df" if texts[name] != rows(source, name)]


@pytest.mark.sweep
def test_rows_are_found_by_their_numbers(live: LiveSource) -> None:
    live.run(
        "CREATE TABLE d (k DOUBLE PRIMARY KEY, n INT)",
        "CREATE TABLE f (k FLOAT PRIMARY KEY, n INT)",
        f"INSERT INTO d VALUES {', '.join(f'({number}, 1)' for number in NUMBERS)}",
        f"INSERT INTO f VALUES {', '.join(f'({number}, 1)' for number in SINGLES)}",
    )
    live.load()
    assert sum(rows(live, "d").values()) == sum(rows(live, "f").values()) == len(NUMBERS)
    assert differences(live) == []
    for table in "df":
        live.run(f"UPDATE {table} SET n = n + 1")
    live.delta()
    assert differences(live) == []
    for table in "df":
        live.run(
            f"UPDATE {table} SET k = 0e0, n = 7 WHERE k = 0",  # which was -0
            f"DELETE FROM {table} WHERE k < 0",
            f"UPDATE {table} SET k = k / 7 WHERE k BETWEEN 0.01 AND 10",
            f"INSERT INTO {table} VALUES (7e0 / 9, 3), (5, 4)",
            f"UPDATE {table} SET n = 5 WHERE k > 100",
        )
    live.delta()
    assert differences(live) == []
    for table in "df":
        live.run(
            f"DELETE FROM {table} WHERE k = 0",
            f"INSERT INTO {table} VALUES (-0e0, 9)",
            f"DELETE FROM {table} WHERE k > 1",
        )
    live.delta()
    assert differences(live) == []
    assert live.statuses(live.merge()) == {"d": "already", "f": "already"}
