"""Bar charts as SVG inside a page, without scripts. Their numbers follow as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from loader.page.data_table import Column, data_table
from loader.page.html import Html, join, tag

_WIDTH, _HEIGHT = 400, 150
_GAP = 0.15
"""The part of a bar's place that stays empty."""


@dataclass(frozen=True)
class Series:
    """A part of each bar: its name, its class in the style sheet, and its value in each bar."""

    name: str
    kind: str
    values: Sequence[float]


@dataclass(frozen=True)
class BarChart:
    """A chart of stacked bars.

    Attributes:
        id: unique on the page.
        title: of the chart.
        labels: of the bars.
        label_heading: what the labels are.
        series: the parts of the bars, from below.
        shown: returns a value as text.
    """

    id: str
    title: str
    labels: Sequence[str]
    label_heading: str
    series: Sequence[Series]
    shown: Callable[[float], str]

    def html(self) -> Html:
        """Return the chart with its legend and its numbers."""
        return tag(
            "figure",
            tag("figcaption", self.title),
            self._legend(),
            self._drawing(),
            tag("p", self._summary(), class_="axis"),
            tag("details", tag("summary", "Numbers"), self._numbers()),
        )

    @property
    def _highest(self) -> float:
        return max(self._totals, default=0.0)

    @property
    def _totals(self) -> list[float]:
        return [sum(values) for values in zip(*(one.values for one in self.series), strict=True)]

    def _summary(self) -> str:
        if not self.labels:
            return "no intervals"
        return f"{self.labels[0]} to {self.labels[-1]}; highest: {self.shown(self._highest)}"

    def _legend(self) -> Html:
        if len(self.series) < 2:
            return join(())
        items = (tag("li", tag("span", class_=f"key {one.kind}"), one.name) for one in self.series)
        return tag("ul", join(items), class_="legend")

    def _drawing(self) -> Html:
        return tag(
            "svg",
            tag("title", self.title, id=f"{self.id}-title"),
            tag("desc", self._summary(), id=f"{self.id}-text"),
            join(self._grid()),
            join(self._bars()),
            viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
            role="img",
            aria_labelledby=f"{self.id}-title {self.id}-text",
        )

    def _grid(self) -> Iterator[Html]:
        for quarter in range(5):
            y = round(_HEIGHT * quarter / 4, 1)
            yield tag("line", x1=0, x2=_WIDTH, y1=y, y2=y, class_="grid")

    def _bars(self) -> Iterator[Html]:
        highest = self._highest
        place = _WIDTH / max(1, len(self.labels))
        for number, label in enumerate(self.labels):
            parts, below = [], 0.0
            for one in self.series:
                height = _HEIGHT * one.values[number] / highest if highest else 0.0
                below += height
                if height:
                    parts.append(_rect(number * place, _HEIGHT - below, place, height, one.kind))
            told = ", ".join(f"{self.shown(one.values[number])} {one.name}" for one in self.series)
            yield tag("g", tag("title", f"{label}: {told}"), join(parts))

    def _numbers(self) -> Html:
        columns = [Column(self.label_heading), *(Column(one.name, number=True) for one in self.series)]
        rows = [
            (label, *(self.shown(one.values[number]) for one in self.series))
            for number, label in enumerate(self.labels)
        ]
        return data_table(self.title, columns, reversed(rows))


def _rect(left: float, top: float, place: float, height: float, kind: str) -> Html:
    """Return a bar in its place, at least half a unit high so that few rows are seen next to many."""
    tall = max(0.5, height)
    return tag(
        "rect",
        x=round(left + place * _GAP / 2, 2),
        y=round(top + height - tall, 2),
        width=round(place * (1 - _GAP), 2),
        height=round(tall, 2),
        class_=kind,
    )
