"""Gauges and counters of a source for monitoring systems, and their text in the exposition format of Prometheus.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from loader.errors import LoaderError
from loader.model.position import Position
from loader.pipeline.reports.lag import SourceLag, source_lag
from loader.settings import SourceSettings

_PREFIX = "binlog_loader"
_HELP = {
    "up": "1 if the status of the source could be read, else 0.",
    "server_up": "1 if the server of the source answered, else 0.",
    "lag_seconds": "Age of the newest applied commit; 0 if the end of the log is applied.",
    "lag_bytes": "Bytes of log that are not applied.",
    "runway_seconds": "Seconds until the server may purge the oldest log file that is not staged; +Inf for never.",
    "staged_intervals": "Intervals that are staged and not applied.",
    "quarantined_tables": "Tables that are quarantined.",
    "tables_behind": "Tables without all records up to the applied position: quarantined, or released and not merged.",
    "paused_tables": "Tables that people paused.",
    "log_number": "Number of the log file of a position, by stage.",
    "log_position": "Offset of a position in its log file, by stage.",
    "table_quarantined": "1 for each quarantined table, with the class of its error.",
    "stage_seconds": "Time that the newest interval took in a stage, with repeated tries and waiting.",
    "rows_total": "Staged rows up to the applied position, by table and operation, since counting began.",
    "staged_bytes_total": "Bytes of staged files up to the applied position, by table, since counting began.",
}
_OPERATIONS = ("insert", "update", "delete")


class Gauge(NamedTuple):
    """A value of a source now; `labels` in addition to `source`. A name that ends with `_total` is a counter."""

    name: str
    source: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def gauges(lag: SourceLag) -> Iterator[Gauge]:
    """Yield the gauges of a source. An unknown value has no gauge."""
    values = {
        "up": 1,
        "server_up": 0 if lag.unreachable else 1,
        "lag_seconds": lag.lag_seconds,
        "lag_bytes": lag.behind,
        "runway_seconds": _runway_seconds(lag),
        "staged_intervals": lag.staged_intervals,
        "quarantined_tables": len(lag.quarantined),
        "tables_behind": len(lag.tables_behind),
        "paused_tables": sum(one.state == "paused" for one in lag.postponed),
    }
    for name, value in values.items():
        if value is not None:
            yield Gauge(name, lag.source, value)
    stages = {"end": lag.log_end, "planned": lag.planned, "staged": lag.staged, "applied": lag.applied}
    for stage, text in stages.items():
        if text:
            position = Position.parse(text)
            yield Gauge("log_number", lag.source, position.lognum, (("stage", stage),))
            yield Gauge("log_position", lag.source, position.logpos, (("stage", stage),))
    for table in lag.quarantined:
        labels = (("table", table.table), ("error", str(table.error["error"])))
        yield Gauge("table_quarantined", lag.source, 1, labels)
    for stage, seconds in lag.stage_seconds.items():
        yield Gauge("stage_seconds", lag.source, seconds, (("stage", stage),))
    for name, counts in sorted(lag.rows.items()):
        for operation, count in zip(_OPERATIONS, counts, strict=True):
            yield Gauge("rows_total", lag.source, count, (("table", name), ("operation", operation)))
    for name, size in sorted(lag.staged_bytes.items()):
        yield Gauge("staged_bytes_total", lag.source, size, (("table", name),))


def read_gauges(
    sources: Sequence[str], settings_of: Callable[[str], SourceSettings]
) -> tuple[list[Gauge], list[LoaderError]]:
    """Read all sources at once, so that a server that does not answer delays no other source.

    Args:
        sources: their names, at least one.
        settings_of: returns the settings of a source.

    Returns:
        the gauges of all sources, in their order, and why sources could not be read.
    """

    def read(source: str) -> tuple[list[Gauge], LoaderError | None]:
        try:
            return list(gauges(source_lag(settings_of(source)))), None
        except LoaderError as error:
            return [unreadable(source)], error

    with ThreadPoolExecutor(len(sources)) as pool:
        found = list(pool.map(read, sources))
    return [gauge for values, _ in found for gauge in values], [error for _, error in found if error]


def unreadable(source: str) -> Gauge:
    """Return the gauge of a source whose status cannot be read."""
    return Gauge("up", source, 0)


def prometheus_text(values: Iterable[Gauge]) -> str:
    """Return gauges in the text format of Prometheus: all values of a name follow each other."""
    found = list(values)
    lines = []
    for name, text in _HELP.items():
        of_name = [one for one in found if one.name == name]
        if of_name:
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {_PREFIX}_{name} {text}", f"# TYPE {_PREFIX}_{name} {kind}", *map(_line, of_name)]
    return "".join(f"{line}\n" for line in lines)


def _line(gauge: Gauge) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in (("source", gauge.source), *gauge.labels))
    value = "+Inf" if gauge.value == float("inf") else f"{gauge.value:.15g}"
    return f"{_PREFIX}_{gauge.name}{{{labels}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _runway_seconds(lag: SourceLag) -> float | None:
    if lag.runway is None:
        return None
    return float("inf") if lag.runway.hours is None else lag.runway.hours * 3600
