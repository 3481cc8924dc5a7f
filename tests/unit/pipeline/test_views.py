"""A view is of one record: the newest one that has nothing after the position or time asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loader.errors import DataError, UsageError
from loader.pipeline import view
from loader.staging.documents import Followed, Plan
from loader.staging.published import Published, PublishedTable
from tests.unit.binlog.builder import LogBuilder
from tests.unit.pipeline.site import ORDERS, Site
from tests.unit.pipeline.test_intervals import Command

NOON = 1_767_268_800_000_000  # 2026-01-01 12:00:00, in microseconds
HOURS = (0, 2, 1, 3)  # of the transactions after noon: the clock of the server went back once


def timed() -> tuple[LogBuilder, list[int]]:
    """A log of a transaction for each of the hours, and where each ends."""
    log, ends = LogBuilder(), []
    for number, hour in enumerate(HOURS):
        log.begin(number + 1, micros=NOON + hour * 3_600_000_000)
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "o"))
        log.xid()
        ends.append(log.end)
    return log, ends


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, timed()[0])


@pytest.fixture
def plans(site: Site) -> list[Plan]:
    """An interval for each transaction, all staged; all but the last are published, the second without `items`."""
    made = [site.plan(end) for end in timed()[1]]
    for plan in made:
        site.extract(plan)
    both = ("shop.orders", "shop.items")
    site.publish(made[0], *both)
    site.publish(made[1], "shop.orders", behind={"shop.items": made[0].stop_seqno})
    site.publish(made[2], *both)
    return made


def test_a_manifest_has_the_newest_time_of_its_commits(site: Site) -> None:
    whole = site.extract(site.plan(len(site.log)))
    assert whole.committed_at == "2026-01-01 15:00:00.000000"


def test_the_newest_view(site: Site, plans: list[Plan]) -> None:
    found = view(site.settings)
    assert (found.stop, found.committed_at) == (plans[2].stop, "2026-01-01 14:00:00.000000")
    assert [(one.table, one.query) for one in found.tables] == [
        ("shop.items", "SELECT * FROM `lake`.`shop`.`items` VERSION AS OF 1"),
        ("shop.orders", "SELECT * FROM `lake`.`shop`.`orders` VERSION AS OF 1"),
    ]
    assert found.missing == ()


@pytest.mark.parametrize(
    ("as_of", "number"),
    [
        ("2026-01-01T12:00:00Z", 0),
        ("2026-01-01T13:30:00Z", 0),  # the third was committed at 13:00, but comes after one of 14:00
        ("2026-01-01T14:00:00Z", 2),
        ("2026-01-01T16:00:00+02:00", 2),
        ("2030-01-01", 2),
    ],
)
def test_a_view_of_a_time_has_nothing_that_was_committed_later(
    site: Site, plans: list[Plan], as_of: str, number: int
) -> None:
    assert view(site.settings, as_of).stop == plans[number].stop


def test_a_view_of_a_position_and_what_is_missing_from_it(site: Site, plans: list[Plan]) -> None:
    stop = plans[1].interval.stop
    for as_of in (str(stop), f"{stop.file}:{stop.logpos + 1}", str(plans[1].stop_seqno), f"1:{stop.logpos}"):
        found = view(site.settings, as_of)
        assert (found.stop, found.missing) == (plans[1].stop, ("shop.items",))
        assert [one.table for one in found.tables] == ["shop.orders"]
    assert view(site.settings, f"{stop.file}:{stop.logpos - 1}").stop == plans[0].stop


@pytest.mark.parametrize("as_of", ["2026-01-01T11:59:59Z", "binlog.000001:5", "5"])
def test_there_is_no_view_that_old(site: Site, plans: list[Plan], as_of: str) -> None:
    with pytest.raises((DataError, UsageError)):
        view(site.settings, as_of)


def test_a_position_is_of_the_newest_generation_that_begins_before_it(site: Site, plans: list[Plan]) -> None:
    follows = Followed(name="0001", stop_seqno=plans[2].stop_seqno)
    newer = site.generation.model_copy(
        update={"name": "0002", "shift": 10, "follows": follows, "start": "binlog.000003:4"}
    )
    site.chain.begin(newer)
    place = {"generation": "0002", "start": "binlog.000003:4", "stop": "binlog.000003:99"}
    plan = site.chain.extend(plans[0].model_copy(update={**place, "shift": 10}))
    seqnos = {"start_seqno": plan.start_seqno, "stop_seqno": plan.stop_seqno}
    manifest = site.extract(plans[0]).model_copy(
        update={**place, **seqnos, "committed_at": "2026-01-01 16:00:00.000000", "files": ()}
    )
    site.chain.publish(manifest)
    record = Published(
        source="shop", generation="0002", stop=plan.stop, stop_seqno=plan.stop_seqno,
        tables={"shop.orders": PublishedTable(snapshot=9, applied=plan.stop_seqno)},
    )  # fmt: skip
    site.store.create(f"{site.chain.folder('0002', plan.start_seqno)}/published.json", record.canonical())
    assert (view(site.settings).generation, view(site.settings).stop) == ("0002", "binlog.000003:99")
    assert view(site.settings, "binlog.000003:200").tables[0].snapshot == 9
    assert view(site.settings, plans[1].stop).stop == plans[1].stop
    assert view(site.settings, "2026-01-01T15:30:00Z").stop == plans[2].stop


@pytest.mark.parametrize("as_of", ["yesterday", "end", "0-1-5"])
def test_what_is_no_position_or_time(site: Site, plans: list[Plan], as_of: str) -> None:
    with pytest.raises(UsageError, match="is no"):
        view(site.settings, as_of)


def test_the_command_prints_the_queries(site: Site, plans: list[Plan]) -> None:
    command = Command(site)
    stop = plans[1].stop
    text = command("tables", "--as-of", stop)
    assert f"the tables at {stop}; the newest commit in it is of 2026-01-01 14" in text
    assert "SELECT * FROM `lake`.`shop`.`orders` VERSION AS OF 1" in text
    assert "shop.items is not included: it was behind" in text
    assert json.loads(command("tables", as_json=True)) == view(site.settings).model_dump(mode="json")
