"""A source that does not answer delays a page by a limited time, and is read by one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event

import pytest

from loader.page.reports.report_cache import Cached, ReportCache
from loader.page.reports.source_report import SourceReport


class Sources:
    """Sources; the stuck ones do not answer until they are released."""

    def __init__(self, *stuck: str) -> None:
        self.reads: list[str] = []
        self.stuck = {name: Event() for name in stuck}

    def read(self, source: str) -> SourceReport:
        self.reads.append(source)
        if source in self.stuck:
            self.stuck[source].wait()
        return SourceReport(source, datetime.now(UTC))


def test_a_fresh_report_is_not_read_again() -> None:
    sources = Sources()
    cache = ReportCache(sources.read, fresh=600)
    first = cache.get(["shop"])["shop"]
    assert first.report is not None
    assert cache.get(["shop"])["shop"] == first
    assert sources.reads == ["shop"]


def test_a_report_that_took_long_is_kept_for_as_long() -> None:
    sources = Sources("shop")
    cache = ReportCache(sources.read, fresh=0, patience=1)
    assert cache.get(["shop"])["shop"].report is None
    sources.stuck["shop"].set()
    found = cache.get(["shop"])["shop"]
    assert found.report is not None
    assert cache.get(["shop"])["shop"] == found
    assert sources.reads == ["shop"]


def wait_for(cache: ReportCache, holds: Callable[[Cached], object]) -> Cached:
    """Ask until the answer is of that kind."""
    until = time.monotonic() + 60
    while not holds(found := cache.get(["shop"])["shop"]):
        assert time.monotonic() < until
    return found


def test_an_old_report_is_read_again() -> None:
    sources = Sources()
    cache = ReportCache(sources.read, fresh=0)
    first = cache.get(["shop"])["shop"]
    wait_for(cache, lambda found: found.report is not first.report)
    assert sources.reads == ["shop", "shop"]


def test_a_source_that_does_not_answer_delays_no_other_and_is_read_once() -> None:
    sources = Sources("crm")
    cache = ReportCache(sources.read, patience=0.5)
    with ThreadPoolExecutor(8) as browsers:
        found = list(browsers.map(lambda _: cache.get(["crm", "shop"]), range(8)))
    assert all(one["shop"].report for one in found)
    assert all(one["crm"].report is None and one["crm"].waiting_seconds > 0 for one in found)
    assert sources.reads.count("crm") == 1
    sources.stuck["crm"].set()
    patient = ReportCache(sources.read, fresh=0)
    assert patient.get(["crm"])["crm"].report is not None


def test_the_previous_report_is_shown_while_a_newer_one_is_read() -> None:
    sources = Sources()
    cache = ReportCache(sources.read, fresh=0, patience=0.05)
    before = cache.get(["shop"])["shop"]
    sources.stuck["shop"] = Event()
    later = wait_for(cache, lambda found: found.waiting_seconds)
    assert later.report is before.report
    sources.stuck["shop"].set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_read_that_breaks_can_be_repeated() -> None:
    def read(source: str) -> SourceReport:
        reads.append(source)
        if len(reads) == 1:
            raise MemoryError
        return SourceReport(source, datetime.now(UTC))

    reads: list[str] = []
    cache = ReportCache(read)
    assert cache.get(["shop"])["shop"].report is None
    for thread in threading.enumerate():
        if thread.name == "status of shop":
            thread.join()
    assert cache.get(["shop"])["shop"].report is not None
