"""A replay starts where a person says, or earlier, and never later. It does not start before a gap in the log.

Its end is a position after its start.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import DataError, UsageError
from loader.model.table import TableName
from loader.pipeline import ReplayStart, find_replay_end, find_replay_start
from loader.staging.documents import Followed, Generation, Manifest
from loader.staging.layout import load_folder
from tests.unit.pipeline.site import Site
from tests.unit.pipeline.test_views import timed

UUID = "e3f05a61-0000-0000-0000-000000000001"
FOLLOWING = "binlog.000003:4"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, timed()[0])


@pytest.fixture
def staged(site: Site) -> list[Manifest]:
    """An interval for each transaction, committed at 12, 14, 13 and 15 o'clock, with the GTIDs 1 to 4."""
    manifests = []
    for number, end in enumerate(timed()[1]):
        plan = site.plan(end)
        manifest = site.attempt(plan).model_copy(update={"gtids": f"{UUID}:1-{number + 1}"})
        manifests.append(site.chain.publish(manifest))
    return manifests


def start(site: Site, text: str) -> ReplayStart:
    return find_replay_start(site.settings, text)


def start_of(manifest: Manifest) -> ReplayStart:
    return ReplayStart(manifest.start, manifest.start_seqno)


def follow(site: Site, staged: list[Manifest], stop: int, gap: str = "") -> Generation:
    """Continue on another server from the start of an interval on, which is superseded."""
    follows = Followed(name="0001", stop_seqno=staged[stop].start_seqno)
    changed = {"name": "0002", "shift": 10, "follows": follows, "start": FOLLOWING, "gap": gap}
    newer = site.generation.model_copy(update=changed)
    return site.chain.begin(newer)


def test_a_position_is_taken_as_it_is(site: Site, staged: list[Manifest]) -> None:
    inside = staged[1].start_seqno + 1
    logpos = inside % 10**12
    found = ReplayStart(f"binlog.000001:{logpos}", inside)
    for text in (f"binlog.000001:{logpos}", f"1:{logpos}", str(inside)):
        assert start(site, text) == found


def test_what_is_before_the_first_interval_means_its_start(site: Site, staged: list[Manifest]) -> None:
    for text in ("begin", "binlog.000001:0", "1:0", "5", "binlog.000000:900"):
        assert start(site, text) == start_of(staged[0])


@pytest.mark.parametrize(
    ("time", "number"),
    [
        ("2025-12-31", 0),
        ("2026-01-01T12:00:00Z", 0),
        ("2026-01-01T12:30:00Z", 1),
        ("2026-01-01T13:00:00Z", 1),  # the third interval was committed then, but the second has a later time
        ("2026-01-01T15:00:00+01:00", 1),
        ("2026-01-01T14:00:01Z", 3),
    ],
)
def test_a_time_means_the_first_interval_that_reaches_it(
    time: str, number: int, site: Site, staged: list[Manifest]
) -> None:
    assert start(site, time) == start_of(staged[number])


@pytest.mark.parametrize(("gtids", "number"), [("1", 1), ("1-2", 2), ("2-4", 0), ("1-3:5", 3)])
def test_a_gtid_set_means_the_first_interval_with_others(
    gtids: str, number: int, site: Site, staged: list[Manifest]
) -> None:
    assert start(site, f"{UUID}:{gtids}") == start_of(staged[number])


@pytest.mark.parametrize("text", ["2026-01-01T15:00:01Z", f"{UUID}:1-4"])
def test_nothing_staged_is_that_new(text: str, site: Site, staged: list[Manifest]) -> None:
    with pytest.raises(DataError, match=r"nothing after .* is staged"):
        start(site, text)


@pytest.mark.parametrize("text", ["end", "yesterday", ""])
def test_what_is_no_start(text: str, site: Site, staged: list[Manifest]) -> None:
    with pytest.raises(UsageError):
        start(site, text)


def test_a_replay_reaches_back_over_a_failover(site: Site, staged: list[Manifest]) -> None:
    follow(site, staged, 3)
    assert start(site, staged[1].start) == start_of(staged[1])
    assert start(site, "begin") == start_of(staged[0])
    assert start(site, str(staged[1].start_seqno)) == start_of(staged[1])
    assert start(site, FOLLOWING) == ReplayStart(FOLLOWING, 13_000_000_000_004)
    assert start(site, "13000000000004") == ReplayStart(FOLLOWING, 13_000_000_000_004)
    with pytest.raises(DataError):  # the interval of 15 o'clock is superseded
        start(site, "2026-01-01T14:30:00Z")


def test_a_replay_does_not_start_before_a_gap(site: Site, staged: list[Manifest]) -> None:
    follow(site, staged, 3, gap="the server purged it")
    assert start(site, "begin") == ReplayStart(FOLLOWING, 13_000_000_000_004)
    for text in (staged[1].start, str(staged[1].start_seqno), "1:4"):
        with pytest.raises(DataError, match="without a gap") as refused:
            start(site, text)
        assert refused.value.hint == f"loader replay --from {FOLLOWING}"
        assert "the server purged it" in refused.value.why


def test_another_log_is_refused(site: Site, staged: list[Manifest]) -> None:
    with pytest.raises(DataError, match="not read from that position"):
        start(site, "mysql-bin.000001:4")


@pytest.mark.parametrize("text", ["binlog.000999:4", "999:4", "999000000000004"])
def test_a_place_after_everything_that_was_read_is_refused(text: str, site: Site, staged: list[Manifest]) -> None:
    end = staged[-1].stop
    assert start(site, end) == ReplayStart(end, staged[-1].stop_seqno)
    with pytest.raises(DataError, match="not read up to that position") as refused:
        start(site, text)
    assert refused.value.why == f"what is staged ends at {end}"
    assert refused.value.hint.startswith(f"name a position up to {end}; ")
    with pytest.raises(DataError, match="not read up to that position"):
        find_replay_end(site.settings, text, start(site, "begin"))


def test_a_place_after_the_end_of_a_server_that_is_no_longer_read_is_refused(
    site: Site, staged: list[Manifest]
) -> None:
    follows = Followed(name="0001", stop_seqno=staged[3].start_seqno)
    changed = {"name": "0002", "shift": 10, "follows": follows, "start": "other-bin.000003:4"}
    site.chain.begin(site.generation.model_copy(update=changed))
    assert start(site, staged[1].start) == start_of(staged[1])
    with pytest.raises(DataError, match="not read up to that position"):
        start(site, "binlog.000999:4")


def test_a_place_where_a_table_was_loaded_may_be_after_the_log(site: Site, staged: list[Manifest]) -> None:
    """Replays of tables without a key start at the snapshot of their load."""
    folder = f"{load_folder('shop', '0001', TableName('shop', 'orders'))}/{999_000_000_000_004:020d}"
    site.chain.store.create(f"{folder}/manifest.json", staged[0].model_copy(update={"files": ()}).canonical())
    assert start(site, "binlog.000999:4").seqno == 999_000_000_000_004
    with pytest.raises(DataError, match="not read up to that position"):
        start(site, "binlog.000999:5")


def test_an_end_is_taken_as_it_is(site: Site, staged: list[Manifest]) -> None:
    inside = staged[1].start_seqno + 1
    logpos = inside % 10**12
    for text in (f"binlog.000001:{logpos}", f"1:{logpos}", str(inside)):
        assert find_replay_end(site.settings, text, start(site, "begin")) == inside


def test_an_end_may_be_on_another_server_than_the_start(site: Site, staged: list[Manifest]) -> None:
    follow(site, staged, 3)
    assert find_replay_end(site.settings, FOLLOWING, start(site, "begin")) == 13_000_000_000_004
    with pytest.raises(UsageError, match="ends before it starts"):
        find_replay_end(site.settings, staged[2].start, start(site, FOLLOWING))


def test_an_end_before_a_gap_is_refused(site: Site, staged: list[Manifest]) -> None:
    follow(site, staged, 3, gap="the server purged it")
    with pytest.raises(DataError, match="without a gap"):
        find_replay_end(site.settings, staged[2].start, start(site, "begin"))


@pytest.mark.parametrize("text", ["binlog.000001:4", "1:4", "binlog.000000:900", "5"])
def test_an_end_before_the_start_is_refused(text: str, site: Site, staged: list[Manifest]) -> None:
    with pytest.raises(UsageError, match="ends before it starts") as refused:
        find_replay_end(site.settings, text, start(site, staged[1].start))
    assert refused.value.why == f"it starts at {staged[1].start}"


@pytest.mark.parametrize("text", ["begin", "end", "2026-01-01", f"{UUID}:1-2", "somewhere"])
def test_what_is_no_end(text: str, site: Site, staged: list[Manifest]) -> None:
    with pytest.raises(UsageError):
        find_replay_end(site.settings, text, start(site, "begin"))
