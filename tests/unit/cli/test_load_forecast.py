"""What a dry run of an initial load prints."""

from __future__ import annotations

import pytest

from loader.cli.commands.initial_load import _report_forecast
from loader.cli.output import Output
from loader.pipeline import LoadForecast, TableForecast
from loader.pipeline.reports.load_duration import ReadRate

_TABLES = (
    TableForecast(table="shop.items", status="new", rows=5_000_000, bytes=700_000_000, chunks=22, seconds=10.1),
    TableForecast(table="shop.orders", status="unfinished", rows=900, bytes=90_000, chunks=9, staged=4, seconds=0.2),
)


@pytest.mark.parametrize(
    ("rate", "line"),
    [
        (
            ReadRate(bytes_per_second=70e6, measured_by="sample", table="shop.items", readers=2),
            "Estimate for reading all tables: 0:00:11, at 70.0 MB/s with 2 readers, by a sample of shop.items. Other load on"
            " the server changes it.",
        ),
        (
            ReadRate(bytes_per_second=70e6, measured_by="chunks", table="shop.orders", readers=1),
            "Estimate for reading all tables: 0:00:11, at 70.0 MB/s, the rate of the chunks of shop.orders that are staged.",
        ),
        (None, "Estimate for reading all tables: 0:00:11. The tables are too small to measure a rate."),
    ],
)
def test_the_time_is_called_an_estimate(rate: ReadRate | None, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    _report_forecast(Output(as_json=False), LoadForecast(tables=_TABLES, rate=rate))
    printed = capsys.readouterr().out
    assert line in " ".join(printed.split())
    head, items, orders = [line.split() for line in printed.splitlines()[:3]]
    assert head[-2:] == ["time", "(estimate)"]
    assert items == ["shop.items", "new", "5,000,000", "700.0", "0", "of", "22", "0:00:11"]
    assert orders == ["shop.orders", "unfinished", "900", "0.1", "4", "of", "9", "0:00:01"]
