"""Positions, seqnos and intervals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import DataError, UsageError
from loader.model.position import SEQNO_UNIT, Interval, Position

POSITIONS = st.builds(Position, st.just("binlog"), st.integers(0, 10**7), st.integers(0, SEQNO_UNIT - 1))


@given(POSITIONS)
def test_a_position_is_read_back_from_its_text(position: Position) -> None:
    assert Position.parse(str(position)) == position
    assert Position.at(position.file, position.logpos) == position


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("binlog.000054:123", ("binlog", 54, 123)),
        ("db1-bin.log.000001:4", ("db1-bin.log", 1, 4)),
        ("mysql-bin.1234567:5000000000", ("mysql-bin", 1_234_567, 5_000_000_000)),
    ],
)
def test_texts_of_positions(text: str, parts: tuple[str, int, int]) -> None:
    position = Position.parse(text)
    assert (position.basename, position.lognum, position.logpos) == parts
    assert str(position) == text


OTHERS = [
    "", "binlog", "binlog.000001", "binlog:4", "binlog.1:4", "binlog.000001:", ".000001:4", "binlog.000001:-4",
    "binlog.000001:4x", "binlog.000001:4 ", "54000000000123",
]  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is not a log position") as caught:
        Position.parse(text)
    assert "binlog.000054:123" in caught.value.hint


@given(POSITIONS, POSITIONS)
def test_order_is_by_file_number_then_offset_and_seqnos_follow_it(a: Position, b: Position) -> None:
    assert (a < b) == ((a.lognum, a.logpos) < (b.lognum, b.logpos))
    assert (a < b) == (a.seqno() < b.seqno())
    assert (a == b) == (a.seqno() == b.seqno())


def test_file_numbers_are_not_compared_as_text() -> None:
    assert Position.parse("binlog.999999:4") < Position.parse("binlog.1000000:4")


def test_seqno_is_readable_and_shifted_by_the_generation() -> None:
    assert Position.parse("binlog.000054:123").seqno() == 54_000_000_000_123
    assert Position.parse("binlog.000001:4").seqno(shift=54) == 55_000_000_000_004


@pytest.mark.parametrize("logpos", [SEQNO_UNIT, SEQNO_UNIT + 1, -1])
def test_an_offset_that_would_collide_has_no_seqno(logpos: int) -> None:
    with pytest.raises(DataError, match="has no seqno"):
        Position("binlog", 1, logpos).seqno()


def test_positions_of_two_logs_have_no_order() -> None:
    a, b = Position.parse("binlog.000001:4"), Position.parse("other.000001:5")
    assert a != b
    with pytest.raises(DataError, match="cannot be compared"):
        _ = a < b
    with pytest.raises(DataError, match="cannot be compared"):
        Interval(a, b)


@pytest.mark.parametrize("stop", ["binlog.000002:4", "binlog.000001:99", "binlog.000002:3"])
def test_an_interval_ends_after_its_start(stop: str) -> None:
    start = Position.parse("binlog.000002:4")
    with pytest.raises(DataError, match="must end after its start"):
        Interval(start, Position.parse(stop))
    assert str(Interval(start, Position.parse("binlog.000003:4"))) == "[binlog.000002:4, binlog.000003:4)"
