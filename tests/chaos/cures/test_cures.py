"""Which commands are found in the words of an error."""

from __future__ import annotations

import pytest

from tests.chaos.cures.commands import commands, lines_with
from tests.chaos.cures.row_skips import is_chosen


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("run again", []),
        ("run: loader initial-load", ["loader initial-load"]),
        ("loader initial-load --table c0.t4 --again", ["loader initial-load --table c0.t4 --again"]),
        (
            "loader initial-load --table c0.t4 --again; then, unless the table was loaded again: loader release c0.t4 (quarantined since 2026)",
            ["loader initial-load --table c0.t4 --again", "loader release c0.t4"],
        ),
        ("loader initial-load --table c0.t --again, or give a position from x on", ["loader initial-load --table c0.t --again"]),
        (
            "say how it was: loader schema set c0.t --at b.000001:4 --file FILE; then stage them: loader extract --interval 5",
            ["loader extract --interval 5"],
        ),
        ("run this command with the loader version that its manifest names (loader_version)", []),
        ("mend the cause, then: loader release c0.t", ["loader release c0.t"]),
    ],
)  # fmt: skip
def test_commands_are_found_in_hints(hint: str, expected: list[str]) -> None:
    assert commands({"hint": hint}) == expected


def test_skips_are_followed_for_some_positions_only() -> None:
    skip = "loader skip b.000001:45 --table c0.t --reason TEXT"
    hint = (
        f"loader initial-load --table c0.t --again; or let it lack its rows: {skip}; then: loader extract --interval 4"
    )
    error = {"hint": hint, "where": {"position": "b.000001:45"}}
    assert commands(error) == ["loader initial-load --table c0.t --again", "loader extract --interval 4"]
    assert lines_with("loader skip", error) == [skip]
    assert [is_chosen(error | {"where": {"position": f"b.000001:{end}"}}) for end in (45, 46)] == [True, False]
    assert not is_chosen(error | {"hint": "loader initial-load --table c0.t --again"})
