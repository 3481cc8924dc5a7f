"""Values of both sides in one form."""

from __future__ import annotations

from loader.model.table import Column
from loader.verify.expressions import canonical_rows, comparison_of, in_warehouse, on_server

COLUMNS = (Column("v", "vector"), Column("f", "float"), Column("g", "geometry"), Column("n", "int"))


def test_a_vector_is_compared_by_its_bytes() -> None:
    server = [
        ("0000803F0000204000000080", 0.10000000149011612, b"\0", "1"),
        (None, None, None, None),
        ("", 1.0, b"", "2"),
    ]
    warehouse = [("[1,2.5,-0]", "0.1", "00", "1"), (None, None, None, None), ("[]", "1", "", "2")]
    ways = [comparison_of(column) for column in COLUMNS]
    assert list(canonical_rows(ways, server)) == list(canonical_rows(ways, warehouse))
    assert list(canonical_rows(ways[:1], [("[1]",)])) != list(canonical_rows(ways[:1], [("0000813F",)]))


def test_bytes_and_numbers_are_asked_for_as_they_are() -> None:
    assert [on_server(column) for column in COLUMNS] == [
        "HEX(`v`)", "CAST(`f` AS DOUBLE)", "`g`", "CAST(`n` + 0 AS CHAR CHARACTER SET utf8mb4)"
    ]  # fmt: skip
    assert [in_warehouse(column) for column in COLUMNS] == [
        "cast(`v` as string)", "cast(`f` as string)", "hex(`g`)", "cast(`n` as string)"
    ]  # fmt: skip
