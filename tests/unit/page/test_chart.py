"""Charts: what is drawn, and the numbers that it shows."""

from __future__ import annotations

from datetime import UTC, datetime

from loader.page.chart import BarChart, Series
from loader.page.charts import covered_seconds, lag_seconds
from loader.pipeline import IntervalActivity, IntervalState
from tests.unit.page.reading import Element, read_page


def drawn(*series: Series) -> Element:
    labels = [f"interval {number}" for number in range(len(series[0].values))]
    chart = BarChart("rows", "Rows", labels, "start", series, lambda value: f"{value:,.0f}")
    return read_page(chart.html())


def bars(page: Element) -> list[tuple[str, ...]]:
    return [
        tuple(str(one.attributes[key]) for key in ("class", "x", "y", "width", "height")) for one in page.all("rect")
    ]


def test_bars_are_stacked_from_below_and_the_highest_fills_the_chart() -> None:
    page = drawn(Series("inserts", "inserts", [30, 0]), Series("deletes", "deletes", [30, 15]))
    assert bars(page) == [
        ("inserts", "15.0", "75.0", "170.0", "75.0"),
        ("deletes", "15.0", "0.0", "170.0", "75.0"),
        ("deletes", "215.0", "112.5", "170.0", "37.5"),
    ]


def test_a_chart_has_a_title_a_text_and_its_numbers_newest_first() -> None:
    page = drawn(Series("inserts", "inserts", [1000, 0]), Series("deletes", "deletes", [0, 2]))
    svg = page.one("svg")
    named = [one.attributes["id"] for name in ("title", "desc") for one in svg.all(name) if "id" in one.attributes]
    assert (svg.attributes["role"], svg.attributes["aria-labelledby"]) == ("img", " ".join(map(str, named)))
    assert page.one("desc").text == "interval 0 to interval 1; highest: 1,000"
    assert [one.one("title").text for one in svg.all("g")] == [
        "interval 0: 1,000 inserts, 0 deletes",
        "interval 1: 0 inserts, 2 deletes",
    ]
    body = page.one("tbody").all("tr")
    assert [row.text for row in body] == ["interval 102", "interval 01,0000"]


def test_few_rows_next_to_many_are_seen() -> None:
    page = drawn(Series("inserts", "inserts", [1_000_000, 1]))
    assert bars(page)[1] == ("inserts", "215.0", "149.5", "170.0", "0.5")


def test_without_rows_nothing_is_drawn() -> None:
    assert bars(drawn(Series("inserts", "inserts", []))) == []
    empty = drawn(Series("inserts", "inserts", [0]))
    assert bars(empty) == []
    assert empty.one("p").text == "interval 0 to interval 0; highest: 0"


def test_the_commit_time_that_intervals_cover() -> None:
    times = ["2026-01-01 12:00:00.000000", "", "2026-01-01 12:01:30.500000", "2026-01-01 12:00:30.000000", ""]
    state = IntervalState.model_construct(start="binlog.000001:4")
    found = [IntervalActivity(state, time) for time in times]
    assert covered_seconds(found) == [0.0, 0.0, 90.5, 0.0, 0.0]
    assert covered_seconds(found[1:3]) == [0.0, 0.0]
    assert covered_seconds([]) == []


def test_the_lag_of_the_newest_commit() -> None:
    def interval(committed: str, staged: int | None, applied: int | None) -> IntervalActivity:
        times = [
            None if second is None else datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC) for second in (staged, applied)
        ]
        state = IntervalState.model_construct(start="binlog.000001:4", staged_at=times[0])
        return IntervalActivity(state, committed, times[1])

    commit = "2026-01-01 12:00:10.500000"
    found = [
        interval(commit, 20, 50),
        interval(commit, 20, None),  # not applied yet
        interval("", 20, 50),  # no commit
        interval(commit, 9, 50),  # the clock of the store is behind the clock of the server
        interval("", None, None),  # planned
    ]
    assert lag_seconds(found) == [(9.5, 30.0), (9.5, 0.0), (0.0, 0.0), (0.0, 41.0), (0.0, 0.0)]
