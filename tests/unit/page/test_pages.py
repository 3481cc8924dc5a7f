"""The pages of sources and tables: exact texts, links, errors with their cure, and hostile names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from loader import pipeline
from loader.error_page import ErrorLinks
from loader.errors import SourceUnavailable, StoreUnavailable
from loader.initial_load.load_states import LoadState
from loader.page.addresses import interval_address
from loader.page.host import CommandLine
from loader.page.overview import overview_page
from loader.page.reports.report_cache import Cached
from loader.page.reports.source_report import SourceReport
from loader.page.source_page import source_page
from loader.page.table_page import table_page
from loader.source.retention import Runway
from loader.staging.notes.pauses import Pause
from loader.staging.notes.quarantine import Quarantine
from tests.unit.page.reading import Element, read_page
from tests.unit.page.test_html import ACTING, EVIL

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOST = CommandLine(ErrorLinks("https://docs.example.org/"))
DOWN = SourceUnavailable("the server does not answer", why="refused\nby <it>", hint="start it", source="db:3306")
ERROR = {"error": "DataError", "what": "a value does not fit", "where": {"column": "n"}, "why": "", "hint": "widen it"}
ERROR |= {"retryable": False, "exit_code": 4}


def interval(number: int, *tables: pipeline.TableActivity, **fields: Any) -> pipeline.IntervalActivity:
    state = {
        "generation": "0001", "start": f"binlog.000001:{number}000", "stop": f"binlog.000001:{number + 1}000",
        "start_seqno": number, "state": "applied", "age": 3660, "bytes": 1500, "tables": len(tables),
        **{name: sum(getattr(one, name) for one in tables) for name in ("inserts", "updates", "deletes")},
    }  # fmt: skip
    statements = fields.pop("statements", ())
    return pipeline.IntervalActivity(
        state=pipeline.IntervalState(**(state | fields)),
        committed_at=f"2026-01-31 11:0{number}:00.000000",
        applied_at=NOW,
        log_bytes=2000,
        tables=tables,
        statements=statements,
    )


def rows(table: str, inserts: int = 0, updates: int = 0, deletes: int = 0) -> pipeline.TableActivity:
    return pipeline.TableActivity(table=table, inserts=inserts, updates=updates, deletes=deletes)


SKIP = pipeline.SkipState(
    start="binlog.000001:1234", seqno=1, gtid="0-1-7", whole=False, tables=("shop.orders",), rows=1200, reason="a <bad> row",
    by="ann", since=NOW, state="used", applies_from=1,
)  # fmt: skip
LATE_SKIP = SKIP.model_copy(
    update={"start": "binlog.000001:1500", "gtid": "", "state": "not used", "why": "staged with the rows", "rows": 0}
)
ALTERED = pipeline.Statement(
    position="binlog.000001:2500", statement="ALTER TABLE t\nADD n INT", tables=("shop.orders",)
)
INTERVALS = (
    interval(1, rows("shop.items", 5), rows("shop.orders", 1000, 20, 3), purged=True),
    interval(
        2,
        rows("shop.orders", 1),
        state="staged",
        manifest="shop/0001/2/manifest.json",
        behind=("shop.orders",),
        left_out=("shop.log",),
        statements=(ALTERED,),
    ),
)
STATUS = pipeline.SourceStatus(
    source="shop",
    server="mysql 9.7.4 at db:3306",
    log_end="binlog.000001:4000",
    planned="binlog.000001:3000",
    staged="binlog.000001:3000",
    applied="binlog.000001:2000",
    staged_intervals=1,
    behind=2000,
    lag_seconds=125.0,
    runway=Runway(file="binlog.000001", hours=30, rule="age"),
    quarantined=(
        Quarantine(
            source="shop", table="shop.items", error=ERROR, applied="binlog.000001:900", applied_seqno=900,
            stop="binlog.000001:2000", stop_seqno=2000, since=NOW,
        ),
    ),
    released=("shop.sizes",),
    tables=(
        pipeline.TableState(table="shop.items", applied_seqno=900, snapshot=1, exact=True),
        pipeline.TableState(table="shop.orders", applied_seqno=2000, snapshot=2, exact=True),
        pipeline.TableState(table="shop.young", applied_seqno=2000, snapshot=2, exact=False),
    ),
    loads=(
        LoadState(
            table="shop.big", chunks=40, staged=10, finished=False, rows=1_000_000, bytes=25_000_000, estimated=True,
            newest_chunk=NOW - timedelta(seconds=20), rows_per_second=5000.4, seconds_left=600.0,
        ),
        LoadState(table="shop.done", chunks=2, staged=2, finished=True, rows=1999, bytes=850),
    ),
    skips=(SKIP, LATE_SKIP),
)  # fmt: skip
REPORT = SourceReport("shop", NOW, STATUS, INTERVALS)


def source(report: SourceReport | None = REPORT, waiting: float = 0.0, **options: Any) -> Element:
    return read_page(source_page("shop", Cached(report, waiting), HOST, NOW, **options))


def table(name: str, report: SourceReport = REPORT) -> Element:
    return read_page(table_page("shop", name, Cached(report), HOST, NOW))


def test_the_figures_of_a_source() -> None:
    assert source().figures() == {
        "lag": "2 min 5 s",
        "log not applied": "2.0 kB",
        "runway": "1 d 6 h",
        "intervals staged, not applied": "1",
        "quarantined tables": "1",
    }
    assert "mysql 9.7.4 at db:3306" in source().text


def test_postponed_tables() -> None:
    since = Pause(source="shop", table="shop.orders", since=NOW, by="ada", reason="disk <full>")
    note = "paused since 2026-01-31 12:00:00 UTC by ada: disk <full>"
    assert since.note == note
    postponed = (
        pipeline.PostponedState(
            table="shop.orders", state="paused", applied="binlog.000001:700", short=True, note=note, pause=since
        ),
        pipeline.PostponedState(table="shop.z", state="waiting", applied="", short=True, note="waits for shop.orders"),
    )
    status = STATUS.model_copy(update={"postponed": postponed})
    report = replace(REPORT, status=status)
    page = source(report)
    assert page.rows("Postponed tables") == [
        ["shop.orders", "paused", "binlog.000001:700", note],
        ["shop.z", "waiting", "unknown", "waits for shop.orders"],
    ]
    assert page.rows("Positions")[-1][0] == "applied to all tables but the quarantined and postponed ones"
    names = [row[:3] for row in page.rows("7 of 7 tables")]
    assert names[:3] == [
        ["shop.items", "quarantined", "binlog.000001:900"],
        ["shop.orders", "paused", "binlog.000001:700"],
        ["shop.z", "waiting", "unknown"],
    ]
    figures = table("shop.orders", report).figures()
    assert (figures["state"], figures["applied position"], figures["why"]) == ("paused", "binlog.000001:700", note)


def test_the_tables_of_a_source_page() -> None:
    page = source()
    assert page.rows("Positions") == [
        ["end of the log", "binlog.000001:4000"],
        ["planned", "binlog.000001:3000"],
        ["staged", "binlog.000001:3000"],
        ["applied to all tables but the quarantined ones", "binlog.000001:2000"],
    ]
    assert page.rows("Initial loads") == [
        ["shop.big", "10 of 40", "10 of 40", "about 1,000,000", "about 25.0 MB", "5,000", "20 s ago", "about 10 min"],
        [
            "shop.done",
            "2 of 2",
            "2 of 2",
            "1,999",
            "850 bytes",
            "",
            "",
            "all chunks are staged; not in the warehouse yet",
        ],
    ]
    assert page.rows("6 of 6 tables") == [
        ["shop.items", "quarantined", "binlog.000001:900", "2026-01-31 11:01:00", "5", "0", "0"],
        ["shop.big", "being read", "unknown", "none", "0", "0", "0"],
        ["shop.done", "staged, not in the warehouse", "unknown", "none", "0", "0", "0"],
        ["shop.orders", "exact", "binlog.000001:2000", "2026-01-31 11:02:00", "1,001", "20", "3"],
        ["shop.sizes", "released, not merged yet", "unknown", "none", "0", "0", "0"],
        ["shop.young", "catching up", "binlog.000001:2000", "none", "0", "0", "0"],
    ]
    first, second = "binlog.000001:1000", "binlog.000001:2000"
    assert page.rows("Intervals") == [
        [
            second,
            "binlog.000001:3000",
            "staged, 1 incomplete, 1 behind",
            "2026-01-31 11:02:00",
            "1",
            "1",
            "0",
            "0",
            "1.5 kB",
            "1 h 1 min",
            "shop/0001/2/manifest.json",
        ],
        [first, second, "applied, purged", "2026-01-31 11:01:00", "2", "1,005", "20", "3", "1.5 kB", "1 h 1 min", ""],
    ]
    assert page.rows("Statements in these intervals") == [
        ["binlog.000001:2500", "shop.orders", "ALTER TABLE t\\nADD n INT"]
    ]


def test_the_charts_of_a_source() -> None:
    staged = tuple(
        replace(one, state=one.state.model_copy(update={"staged_at": NOW - timedelta(minutes=50 - 10 * number)}))
        for number, one in enumerate(INTERVALS)
    )
    staged = (staged[0], replace(staged[1], applied_at=None))
    charts = source(SourceReport("shop", NOW, STATUS, staged)).all("figure")
    assert [one.one("figcaption").text for one in charts] == [
        "Rows by operation",
        "Commit time covered",
        "Log covered",
        "Lag of the newest commit",
    ]
    first, second = "binlog.000001:1000", "binlog.000001:2000"
    assert [one.one("title").text for one in charts[2].all("g")] == [
        f"{first}: 2.0 kB of log", f"{second}: 2.0 kB of log",
    ]  # fmt: skip
    lag = charts[3]
    assert lag.one("svg").attributes["role"] == "img"
    assert lag.one("desc").text == f"{first} to {second}; highest: 59 min"
    assert [one.one("title").text for one in lag.all("g")] == [
        f"{first}: 9 min until staged, 50 min until applied",
        f"{second}: 18 min until staged, 0 s until applied",
    ]
    assert [row.text for row in lag.one("tbody").all("tr")] == [f"{second}18 min0 s", f"{first}9 min50 min"]


def test_an_interval_has_an_address() -> None:
    start = INTERVALS[1].state.start
    assert interval_address("shop", start) == "source?name=shop&refresh=off#interval-binlog.000001:2000"
    assert source().one("span", id="interval-binlog.000001:2000").text == start


def test_a_quarantined_table_has_its_cause_and_its_cure() -> None:
    panel = (
        "a value does not fit\n"
        "where: column n\n"
        "what to do: widen it; then, unless the table was loaded again: loader release shop.items"
        " (quarantined since 2026-01-31 12:00:00 UTC)\n"
        "read on: https://docs.example.org/reference/errors.html#classes"
    )
    assert source().panels() == [f"shop.items is quarantined\n{panel}"]
    assert table("shop.items").panels() == [f"Quarantined since 2026-01-31 12:00:00 UTC\n{panel}"]


def test_the_page_of_a_table() -> None:
    page = table("shop.orders")
    assert page.one("h1").text == "shop.orders"
    assert page.figures() == {
        "state": "exact",
        "applied position": "binlog.000001:2000",
        "newest commit (UTC)": "2026-01-31 11:02:00",
        "in the interval from": "binlog.000001:2000",
    }
    assert [one.one("title").text for one in page.all("g")] == [
        "binlog.000001:1000: 1,000 inserts, 20 updates, 3 deletes",
        "binlog.000001:2000: 1 inserts, 0 updates, 0 deletes",
    ]
    assert len(page.rows("Statements in these intervals")) == 1
    assert table("shop.young").figures()["newest commit"] == "before the newest 2 intervals"
    assert table("shop.big").rows("Initial loads")[0][7] == "about 10 min"
    assert table("no.such").one("main").text == "no.suchThe source has no such table."


def test_what_operators_skipped_is_listed_newest_first() -> None:
    rows = [
        [
            "binlog.000001:1500", "shop.orders", "0", "not used: staged with the rows", "ann", "2026-01-31 12:00:00",
            "a <bad> row",
        ],
        ["binlog.000001:1234 0-1-7", "shop.orders", "1,200", "used", "ann", "2026-01-31 12:00:00", "a <bad> row"],
    ]  # fmt: skip
    assert source().rows("Skipped transactions") == table("shop.orders").rows("Skipped transactions") == rows
    assert "Skipped transactions" not in table("shop.items").text
    lacking = STATUS.tables[1].model_copy(update={"exact": False, "skipped_at": SKIP.start})
    status = STATUS.model_copy(update={"tables": (lacking,), "skips": (SKIP,) * 201})
    report = SourceReport("shop", NOW, status, INTERVALS)
    assert table("shop.orders", report).figures()["state"] == "lacks rows that were skipped at binlog.000001:1234"
    assert len(source(report).rows("200 newest of 201 skipped transactions")) == 200


def test_a_part_of_a_name_limits_the_tables() -> None:
    page = source(find="ord")
    assert [row[0] for row in page.rows("1 of 6 tables")] == ["shop.orders"]
    assert page.one("input", type="search").attributes["value"] == "ord"


def test_before_the_first_interval_no_table_is_known() -> None:
    status = STATUS.model_copy(update={"quarantined": (), "loads": (), "tables": (), "released": ()})
    page = source(SourceReport("shop", NOW, status))
    assert page.rows("0 of 0 tables") == [["none yet: the first interval after the initial load publishes the tables"]]
    assert source(find="no such").rows("0 of 6 tables") == [["none"]]
    assert [one.text for one in page.all("h2")] == ["The newest 0 intervals", "Tables"]


def test_links_and_refresh() -> None:
    page = source(find="a&b")
    links = [one.attributes["href"] for one in page.all("a")][:2]
    assert links == ["./", "source?name=shop&find=a%26b&refresh=off"]
    refresh = [one.attributes["content"] for one in page.all("meta") if one.attributes.get("http-equiv") == "refresh"]
    assert refresh == ["30"]
    still = source(refreshing=False)
    assert not [one for one in still.all("meta") if "http-equiv" in one.attributes]
    assert [one.attributes["href"] for one in still.all("a")][1] == "source?name=shop"
    assert source().rows("6 of 6 tables")[3][0] == "shop.orders"
    assert "table?source=shop&name=shop.orders" in [one.attributes["href"] for one in source().all("a")]


def test_a_server_that_does_not_answer_leaves_what_the_store_knows() -> None:
    gone = STATUS.model_copy(
        update={
            "unreachable": DOWN.as_dict(),
            "log_end": "",
            "behind": None,
            "lag_seconds": None,
            "runway": None,
            "quarantined": (),
        }
    )
    page = source(SourceReport("shop", NOW, gone, INTERVALS))
    assert page.panels() == [
        "the server does not answer\nwhere: source db:3306\nwhy: refused\nby <it>\nwhat to do: start it\n"
        "read on: https://docs.example.org/reference/errors.html#server-unavailable"
    ]
    assert page.figures()["lag"] == "unknown"
    assert page.rows("Positions")[0] == ["end of the log", "unknown"]


def test_a_store_that_does_not_answer() -> None:
    error = StoreUnavailable("the store does not answer", hint="wait for it")
    page = source(SourceReport("shop", NOW, error=error.as_dict()))
    assert [panel.split("\nread on")[0] for panel in page.panels()] == [
        "the store does not answer\nwhat to do: wait for it"
    ]
    assert table("shop.orders", SourceReport("shop", NOW, error=error.as_dict())).panels() == page.panels()


def test_a_store_that_does_not_answer_any_more_leaves_what_was_known() -> None:
    error = StoreUnavailable("the store does not answer").as_dict()
    known = SourceReport("shop", NOW - timedelta(minutes=3), STATUS, INTERVALS)
    report = SourceReport("shop", NOW, error=error).after(known)
    for page in (source(report), table("shop.orders", report)):
        assert page.panels()[0].startswith("the store does not answer\n")
        assert page.one("p", class_="notice").text == "The page shows what was known 3 min ago."
    assert source(report).figures() == source().figures()
    assert table("shop.orders", report).figures() == table("shop.orders").figures()
    overview = read_page(overview_page({"shop": Cached(report)}, NOW, refreshing=True))
    assert overview.rows("Sources") == [["shop", "the store does not answer", "2 min 5 s", "2.0 kB", "1 d 6 h", "1"]]
    assert report.after(known) is report
    again = SourceReport("shop", NOW, error=error)
    assert again.after(None) is again
    assert again.after(again) is again


def test_a_report_that_takes_long() -> None:
    assert source(None, 65).one("p", class_="notice").text == "The server and the store are being read for 1 min 5 s."
    old = SourceReport("shop", NOW - timedelta(minutes=3), STATUS, INTERVALS)
    assert source(old, 65).one("p", class_="notice").text == (
        "The server and the store are being read for 1 min 5 s. The page shows what was known 3 min ago."
    )


def test_the_page_of_all_sources() -> None:
    broken = SourceReport("crm", NOW, error=StoreUnavailable("the store does not answer").as_dict())
    unreachable = SourceReport("erp", NOW, STATUS.model_copy(update={"unreachable": DOWN.as_dict(), "quarantined": ()}))
    reports = {"shop": Cached(REPORT), "crm": Cached(broken), "erp": Cached(unreachable), "new": Cached(None, 7)}
    page = read_page(overview_page(reports, NOW, refreshing=True))
    assert page.rows("Sources") == [
        ["shop", "answers", "2 min 5 s", "2.0 kB", "1 d 6 h", "1"],
        ["crm", "the store does not answer", "", "", "", ""],
        ["erp", "the server does not answer", "2 min 5 s", "2.0 kB", "1 d 6 h", "0"],
        ["new", "being read", "", "", "", ""],
    ]
    assert [one.attributes["href"] for one in page.all("a")][1:] == [f"source?name={name}" for name in reports]


def hostile(value: Any) -> Any:
    """The value with every text in it replaced."""
    if isinstance(value, str):
        return EVIL
    if isinstance(value, dict):
        return {key: hostile(one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(hostile, value))
    return tuple(map(hostile, value)) if isinstance(value, tuple | list) else value


def replaced(model: Any) -> Any:
    """The model with every text in it replaced."""
    names = getattr(type(model), "model_fields", None) or model.__dataclass_fields__
    found = {}
    for name in names:
        value = getattr(model, name)
        several = value if isinstance(value, tuple) else (value,)
        made = tuple(replaced(one) if isinstance(one, BaseModel) else hostile(one) for one in several)
        found[name] = made if isinstance(value, tuple) else made[0]
    return type(model).model_construct(**found) if isinstance(model, BaseModel) else type(model)(**found)


def test_hostile_texts_add_nothing_to_a_page() -> None:
    changed = {"unreachable": DOWN.as_dict(), "runway": None}
    status = replaced(STATUS.model_copy(update=changed))
    intervals = tuple(replace(replaced(one), committed_at="") for one in INTERVALS)
    report = SourceReport(EVIL, NOW, status, intervals, hostile(DOWN.as_dict()) | {"retryable": True})
    plain = {one.name for one in _elements(source())} | {"strong", "p"}
    for text in (
        source_page(EVIL, Cached(report), HOST, NOW, find=EVIL[:5]),
        table_page(EVIL, EVIL, Cached(SourceReport(EVIL, NOW, status, intervals)), HOST, NOW),
        overview_page({EVIL: Cached(report)}, NOW, refreshing=True),
    ):
        assert not ACTING.search(text.replace("\n", ""))
        found = _elements(read_page(text))
        assert {one.name for one in found} <= plain
        assert not [key for one in found for key in one.attributes if key.startswith("on") or key == "style"]
        assert not [
            value for one in found if (value := one.attributes.get("href") or "").lower().startswith("javascript")
        ]
        assert "alert(" in text


def _elements(page: Element) -> list[Element]:
    inside = [child for child in page.children if isinstance(child, Element)]
    return inside + [one for child in inside for one in _elements(child)]


def test_what_is_shown_has_limits() -> None:
    def tables(number: int) -> list[str]:
        return [f"shop.t{one:04d}" for one in range(number)]

    quarantined = tuple(STATUS.quarantined[0].model_copy(update={"table": name}) for name in tables(25))
    loads = tuple(STATUS.loads[0].model_copy(update={"table": name}) for name in tables(201))
    status = STATUS.model_copy(update={"quarantined": quarantined, "loads": loads, "tables": (), "released": ()})
    statements = tuple(ALTERED._replace(position=f"binlog.000001:{one}") for one in range(101))
    long = ALTERED._replace(statement="x" * 501)
    changed = replace(INTERVALS[1], statements=(*statements, long), tables=())
    page = source(SourceReport("shop", NOW, status, (changed,)))
    assert len(page.panels()) == 20
    assert "5 more tables are quarantined: see below." in page.text
    assert len(page.rows("200 of 201 initial loads")) == 200
    shown = page.rows("200 of 201 tables")
    assert [row[0] for row in shown] == tables(200)
    assert [row[1] for row in shown[:26]] == [*["quarantined"] * 25, "being read"]
    newest = page.rows("100 newest of 102 statements in these intervals")
    assert newest[0][2] == "x" * 500 + "... (501 characters)"
    assert newest[1][0] == "binlog.000001:100"
