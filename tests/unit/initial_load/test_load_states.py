"""The rate of an initial load, and the time that is left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from loader.initial_load.load_states import rows_per_second, seconds_left

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def times(*seconds: float) -> list[datetime]:
    return [NOON + timedelta(seconds=one) for one in seconds]


def test_the_pace_is_that_of_the_staged_chunks() -> None:
    assert seconds_left(times(0, 10, 20), 10, NOON + timedelta(seconds=20)) == 70.0


def test_one_chunk_tells_no_pace() -> None:
    assert seconds_left([], 10, NOON) is None
    assert seconds_left(times(0), 10, NOON) is None


def test_a_load_that_stops_takes_longer_and_longer() -> None:
    assert seconds_left(times(0, 10, 20), 10, NOON + timedelta(seconds=200)) == 700.0


def test_an_interruption_long_ago_does_not_count() -> None:
    resumed = times(0, 1, *(86_400 + 10 * number for number in range(20)))
    assert seconds_left(resumed, 32, resumed[-1]) == 100.0


def test_a_store_whose_clock_is_ahead() -> None:
    assert seconds_left(times(0, 10), 3, NOON) == 10.0


def test_the_rate_is_that_of_the_newest_chunks() -> None:
    staged = times(0, 1, 100, 110, 120)
    assert rows_per_second(staged, [7, 500, 300], NOON + timedelta(seconds=120)) == 40.0
    assert rows_per_second(staged, [7, 500, 300], NOON + timedelta(seconds=180)) == 10.0


def test_one_chunk_tells_no_rate() -> None:
    assert rows_per_second([], [], NOON) is None
    assert rows_per_second(times(0), [7], NOON) is None
    assert rows_per_second(times(0, 0), [7, 7], NOON) is None
