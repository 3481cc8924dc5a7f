"""Gauges of a source, and their text for Prometheus."""

from __future__ import annotations

import re

from loader.errors import SourceUnavailable
from loader.pipeline import PostponedState, SourceLag, gauges, prometheus_text, unreadable
from loader.source.retention import Runway
from loader.staging.notes.quarantine import Quarantine

_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)\{{{_LABEL}(?:,{_LABEL})*\}} (\+Inf|-?\d+(?:\.\d+)?(?:e[+-]\d+)?)")
_NAME = r"(binlog_loader_[a-z_]+)"

LAG = SourceLag(
    source='my "shop"\\',
    server="mysql",
    log_end="binlog.000055:900",
    planned="binlog.000055:800",
    staged="binlog.000055:700",
    applied="binlog.000054:123",
    staged_intervals=2,
    behind=5_000_000_000,
    lag_seconds=61.5,
    runway=Runway(file="binlog.000054", hours=1.5, rule="age"),
    quarantined=(Quarantine.model_construct(table="shop.a\nb", error={"error": "DataError"}),),
    released=("shop.c",),
    rows={"shop.c": (7, 0, 2)},
    staged_bytes={"shop.c": 1234},
    stage_seconds={"extract": 3.5},
    postponed=(
        PostponedState(table="shop.d", state="paused", applied="binlog.000054:100", short=True, note="paused"),
        PostponedState(table="shop.e", state="waiting", applied="", short=True, note="waits"),
    ),
)


def samples(text: str) -> dict[str, str]:
    """The samples of a text, each checked, and grouped below one HELP and TYPE line of its name."""
    found: dict[str, str] = {}
    current, seen = "", set()
    lines = text.split("\n")
    assert lines.pop() == ""
    for line in lines:
        if head := re.fullmatch(rf"# HELP {_NAME} [^\n]+", line):
            assert head[1] not in seen
            seen.add(current := head[1])
        elif line.startswith("#"):
            assert line == f"# TYPE {current} {'counter' if current.endswith('_total') else 'gauge'}"
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == current
            key = line.rpartition(" ")[0]
            assert key not in found
            found[key] = sample[2]
    return found


def test_the_text_for_prometheus() -> None:
    source = r'source="my \"shop\"\\"'
    found = samples(prometheus_text(gauges(LAG)))
    assert found == {
        f"binlog_loader_{name}": value
        for name, value in {
            f"up{{{source}}}": "1",
            f"server_up{{{source}}}": "1",
            f"lag_seconds{{{source}}}": "61.5",
            f"lag_bytes{{{source}}}": "5000000000",
            f"runway_seconds{{{source}}}": "5400",
            f"staged_intervals{{{source}}}": "2",
            f"quarantined_tables{{{source}}}": "1",
            f"tables_behind{{{source}}}": "2",
            f"paused_tables{{{source}}}": "1",
            f'log_number{{{source},stage="end"}}': "55",
            f'log_number{{{source},stage="planned"}}': "55",
            f'log_number{{{source},stage="staged"}}': "55",
            f'log_number{{{source},stage="applied"}}': "54",
            f'log_position{{{source},stage="end"}}': "900",
            f'log_position{{{source},stage="planned"}}': "800",
            f'log_position{{{source},stage="staged"}}': "700",
            f'log_position{{{source},stage="applied"}}': "123",
            f'table_quarantined{{{source},table="shop.a\\nb",error="DataError"}}': "1",
            f'stage_seconds{{{source},stage="extract"}}': "3.5",
            f'rows_total{{{source},table="shop.c",operation="insert"}}': "7",
            f'rows_total{{{source},table="shop.c",operation="update"}}': "0",
            f'rows_total{{{source},table="shop.c",operation="delete"}}': "2",
            f'staged_bytes_total{{{source},table="shop.c"}}': "1234",
        }.items()
    }


def test_what_is_not_known_has_no_gauge() -> None:
    unknown = {"log_end": "", "behind": None, "lag_seconds": None, "runway": None, "quarantined": (), "source": "a"}
    down = LAG.model_copy(update={**unknown, "unreachable": SourceUnavailable("no answer").as_dict()})
    found = samples(prometheus_text([*gauges(down), unreadable("b")]))
    assert [name for name in found if "lag" in name or "runway" in name or 'stage="end"' in name] == []
    assert found['binlog_loader_server_up{source="a"}'] == "0"
    assert (found['binlog_loader_up{source="a"}'], found['binlog_loader_up{source="b"}']) == ("1", "0")


def test_a_log_that_is_kept_forever() -> None:
    forever = LAG.model_copy(update={"runway": Runway(file="binlog.000054", hours=None, rule="none"), "source": "a"})
    assert samples(prometheus_text(gauges(forever)))['binlog_loader_runway_seconds{source="a"}'] == "+Inf"
