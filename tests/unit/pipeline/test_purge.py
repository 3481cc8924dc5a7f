"""What a purge takes and what it leaves, whenever it comes and wherever it is cut short."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import pytest

from loader.errors import StagedDataError
from loader.pipeline import intervals, purge, verify_interval
from loader.pipeline.upkeep.kept_files import newest_of
from loader.pipeline.upkeep.pending_loads import pending_loads
from loader.settings import Retention, SourceSettings
from loader.spark.job_files import RESULTS
from loader.staging.documents import Followed, IncompleteTable, Plan
from loader.staging.file_verification import find_fault
from loader.staging.published import Published
from loader.store.local import LocalStore
from tests.unit.pipeline.site import Site, shop
from tests.unit.pipeline.test_intervals import Command

NOW = timedelta(0)
DAY = timedelta(days=1)
TABLES = ("shop.orders", "shop.items")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, shop(12)[0])


@pytest.fixture
def plans(site: Site) -> list[Plan]:
    """Four intervals, of which the first two are applied, the third is staged and the last planned."""
    ends = shop(12)[1]
    made = [site.plan(ends[number]) for number in (2, 5, 8, 11)]
    for one in made[:3]:
        site.extract(one)
    site.publish(made[1], *TABLES)
    return made


def aged(site: Site, hours: float, name: str = "") -> None:
    """Let what is in the staging root now, or what is named so, have been written that long ago."""
    for path in (site.folder / "staging").rglob("*"):
        if name in str(path):
            moment = path.stat().st_mtime - hours * 3600
            os.utime(path, (moment, moment))


def files(site: Site) -> dict[str, bytes]:
    return {key: data for key, data in site.objects().items() if key.endswith(".csv")}


def of(site: Site, plan: Plan) -> set[str]:
    return {file.key for file in site.extract(plan).files}


def archiving(site: Site) -> SourceSettings:
    return site.settings.model_copy(update={"retention": Retention(archive="archive")})


def test_only_files_that_every_table_has_go(site: Site, plans: list[Plan]) -> None:
    before = site.objects()
    done = purge(site.settings, NOW)
    assert [(one.what, one.start_seqno, one.files) for one in done] == [
        ("interval", plans[0].start_seqno, 2), ("interval", plans[1].start_seqno, 2),
    ]  # fmt: skip
    gone = of(site, plans[0]) | of(site, plans[1])
    notes = {f"{site.chain.folder('0001', plan.start_seqno)}/purged.json" for plan in plans[:2]}
    after = site.objects()
    assert set(after) == (set(before) - gone) | notes
    assert {key: after[key] for key in set(after) - notes} == {key: before[key] for key in set(before) - gone}
    assert not any(
        "/a/" in str(path) for path in (site.folder / "staging/shop/0001" / f"{plans[0].start_seqno:020d}").rglob("*")
    )
    assert purge(site.settings, NOW) == []
    assert site.objects() == after


def test_results_that_nobody_has_read_go_after_a_day(site: Site, plans: list[Plan]) -> None:
    kept, left = f"{RESULTS}kept.json", f"{RESULTS}left.json"
    for key in (kept, left):
        site.chain.store.create(key, b"{}")
    aged(site, 23, kept)
    aged(site, 24, left)
    purge(site.settings, None, dry_run=True)
    assert [info.key for info in site.chain.store.list(RESULTS)] == [kept, left]
    purge(site.settings, None)
    assert [info.key for info in site.chain.store.list(RESULTS)] == [kept]


def test_the_chain_goes_on_and_nothing_of_it_is_free_again(site: Site, plans: list[Plan]) -> None:
    manifests = [site.extract(plan) for plan in plans[:3]]
    late = site.attempt(plans[1], "late")
    purge(site.settings, NOW)
    assert site.chain.plans(site.generation) == plans
    assert site.chain.extend(plans[0].model_copy(update={"stop": plans[1].stop})) == plans[0]
    assert site.chain.publish(late) == manifests[1]
    assert site.chain.unfinished("0001") == plans[3:]
    assert site.extract(plans[3]).start_seqno == plans[3].start_seqno
    assert [(one.state, one.purged) for one in intervals(site.settings)] == [
        ("applied", True), ("applied", True), ("staged", False), ("staged", False),
    ]  # fmt: skip
    assert {one.why for one in verify_interval(site.settings, plans[0].start_seqno)} == {
        "every table has its interval, and the file was older than the retention period"
    }


def test_what_a_quarantined_table_needs_stays_until_a_record_has_it(site: Site, plans: list[Plan]) -> None:
    site.publish(plans[2], "shop.orders", behind={"shop.items": plans[0].stop_seqno})
    assert [one.start_seqno for one in purge(site.settings, NOW)] == [plans[0].start_seqno]
    assert [(one.state, one.behind) for one in intervals(site.settings)] == [
        ("applied", ()), ("staged", ("shop.items",)), ("staged", ("shop.items",)), ("planned", ()),
    ]  # fmt: skip
    site.extract(plans[3])
    site.publish(plans[3], *TABLES)
    assert [one.start_seqno for one in purge(site.settings, NOW)] == [plan.start_seqno for plan in plans[1:]]


def begun_load(site: Site, table: str, seqno: int, document: str = "plan") -> None:
    site.store.create(f"shop/0001/load/shop/{table}/{seqno:020d}/{document}.json", b"{}")


def test_what_an_unfinished_load_needs_stays(site: Site, plans: list[Plan]) -> None:
    """The load begins in the second interval, in the middle of its rows, and another load was finished before."""
    begun_load(site, "items", 0, "loaded")
    begun_load(site, "items", plans[1].start_seqno + 1)
    assert [one.start_seqno for one in purge(site.settings, NOW)] == [plans[0].start_seqno]
    aged(site, 1, "published")
    begun_load(site, "items", plans[1].start_seqno + 1, "manifest")
    begun_load(site, "items", plans[1].start_seqno + 1, "loaded")
    assert purge(site.settings, NOW) == []  # the log is merged over the load by the next delta
    site.publish(plans[2], *TABLES)
    assert [one.start_seqno for one in purge(site.settings, NOW)] == [plan.start_seqno for plan in plans[1:3]]


def test_the_load_of_one_table_keeps_no_rows_of_others(site: Site, plans: list[Plan]) -> None:
    begun_load(site, "others", 0)
    begun_load(site, "items", plans[1].stop_seqno, "part")  # without a plan: a table without a key is being read
    assert [one.start_seqno for one in purge(site.settings, NOW)] == [plan.start_seqno for plan in plans[:2]]


def test_a_load_keeps_intervals_in_which_rows_of_its_table_are_missing(site: Site, plans: list[Plan]) -> None:
    begun_load(site, "lost", plans[0].start_seqno)
    whole, place = site.extract(plans[0]), plans[0].stop
    gap = IncompleteTable(
        table="shop.lost", seqno=plans[0].stop_seqno, position=place, at=place, what="not known", why="lost"
    )
    lineage = site.chain.lineage("0001")
    record = newest_of(site.chain, lineage)
    assert record is not None
    loads = pending_loads(site.chain, lineage, record)
    assert [loads.need(one) for one in (whole, whole.model_copy(update={"left_out": (gap,)}))] == [False, True]


def test_of_a_table_that_stands_nowhere_everything_stays(site: Site, plans: list[Plan]) -> None:
    site.publish(plans[2], "shop.orders", behind={"shop.items": 0})
    assert purge(site.settings, NOW) == []


def test_without_a_policy_files_stay_for_good(site: Site, plans: list[Plan]) -> None:
    aged(site, 100_000)
    before = site.objects()
    assert purge(site.settings, None) == []
    assert site.objects() == before


def test_the_time_counts_from_when_every_table_had_it(site: Site, plans: list[Plan]) -> None:
    aged(site, 100_000, "0000")
    site.publish(plans[0], *TABLES)
    (published,) = (site.folder / "staging").rglob(f"{plans[1].start_seqno:020d}/published.json")
    os.utime(published)
    assert purge(site.settings, DAY) == []
    aged(site, 25, f"{plans[0].start_seqno:020d}/published")
    assert {one.start_seqno for one in purge(site.settings, DAY)} == {plans[0].start_seqno}
    aged(site, 25, f"{plans[1].start_seqno:020d}/published")
    assert {one.start_seqno for one in purge(site.settings, DAY)} == {plans[1].start_seqno}


def test_attempts_that_lost_go_and_those_that_may_win_stay(site: Site, plans: list[Plan]) -> None:
    site.attempt(plans[2], "loser")
    site.attempt(plans[3], "running")
    assert purge(site.settings, None) == []  # the loser may still run
    aged(site, 2)
    site.attempt(plans[2], "slow")
    (gone,) = purge(site.settings, None)
    assert (gone.what, gone.start_seqno, gone.attempt, gone.files) == ("attempt", plans[2].start_seqno, "loser", 2)
    left = {key.split("/")[3] for key in files(site) if f"{plans[2].start_seqno:020d}" in key}
    assert left == {"a", "slow"}
    assert [key for key in files(site) if "running" in key]
    assert verify_interval(site.settings, plans[2].start_seqno) == []
    assert site.chain.purged("0001", plans[2].start_seqno) is None


def test_what_nobody_named_and_what_is_no_interval_stays(site: Site, plans: list[Plan]) -> None:
    foreign = next(iter(of(site, plans[0]))).replace("part-", "part-9")
    others = [
        foreign,
        "shop/0001/load/shop/orders/00000000000000000004/a/shop/orders/x/part-1.csv",
        "shop/0001/runs/x.json",
    ]
    for key in others:
        site.store.create(key, b"x")
    purge(site.settings, NOW)
    aged(site, 100)
    assert purge(site.settings, NOW) == []
    assert {key for key in others if site.store.get(key) == b"x"} == set(others)


def test_a_dry_run_lists_the_same_and_removes_nothing(site: Site, plans: list[Plan]) -> None:
    before = site.objects()
    listed = purge(site.settings, NOW, dry_run=True)
    assert site.objects() == before
    assert purge(site.settings, NOW) == listed != []


def test_an_archive_has_every_byte_before_one_is_removed(site: Site, plans: list[Plan]) -> None:
    before = files(site)
    purge(archiving(site), NOW)
    kept = {info.key: site.store.get(info.key) for info in site.store.list("archive/")}
    expected = {f"archive/{key}": before[key] for plan in plans[:2] for key in of(site, plan)}
    assert {key: data for key, data in kept.items() if key.endswith(".csv")} == expected
    for key, data in kept.items():
        if not key.endswith(".csv"):
            assert data == site.store.get(key.removeprefix("archive/"))
    for plan in plans[:2]:
        assert site.chain.purged("0001", plan.start_seqno).archive == "archive"  # type: ignore[union-attr]


def test_what_is_not_as_it_was_staged_is_not_archived(site: Site, plans: list[Plan]) -> None:
    key = sorted(of(site, plans[1]))[0]
    with site.store.writing(key) as sink:
        sink.write(b"x")
    with pytest.raises(StagedDataError, match="an interval cannot be archived: a staged file has changed") as caught:
        purge(archiving(site), NOW)
    assert caught.value.where["file"] == key
    assert site.chain.purged("0001", plans[1].start_seqno) is None
    assert of(site, plans[1]) <= set(files(site))


class PowerCut(BaseException):
    """What no handler of ours catches."""


class Dying(LocalStore):
    """A store that dies before the n-th change to it."""

    left = 10**9

    def _count(self) -> None:
        Dying.left -= 1
        if Dying.left < 0:
            raise PowerCut

    def create(self, key: str, data: bytes) -> bool:
        self._count()
        return super().create(key, data)

    @contextmanager
    def writing(self, key: str) -> Iterator[BinaryIO]:
        self._count()
        with super().writing(key) as file:
            yield file

    def delete(self, key: str) -> None:
        self._count()
        super().delete(key)

    def remove(self, prefix: str) -> None:
        self._count()
        super().remove(prefix)


@pytest.mark.parametrize("archive", [False, True])
def test_a_purge_cut_anywhere_is_finished_by_the_next(
    archive: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("upkeep.staging_purge", "chain.plan_chain"):
        monkeypatch.setattr(f"loader.pipeline.{module}.open_store", Dying)
    changes, cut = 0, True
    ends = shop(12)[1]
    while cut:
        folder = tmp_path / str(changes)
        folder.mkdir()
        site = Site(folder, shop(12)[0])
        made = [site.plan(ends[number]) for number in (2, 5)]
        before = {file.key for plan in made for file in site.extract(plan).files}
        site.publish(made[1], *TABLES)
        settings = archiving(site) if archive else site.settings
        Dying.left = changes
        try:
            purge(settings, NOW)
            cut = False
        except PowerCut:
            changes += 1
        Dying.left = 10**9
        for plan in made:
            if set(files(site)) & {file.key for file in site.extract(plan).files} != {
                file.key for file in site.extract(plan).files
            }:
                wrong = [find_fault(site.store, file) for file in site.extract(plan).files]
                assert {str(one.what) for one in wrong if one} == {"a staged file was purged"}
        purge(settings, NOW)
        assert files(site) == {}
        if archive:
            assert {info.key for info in site.store.list("archive/") if info.key.endswith(".csv")} == {
                f"archive/{key}" for key in before
            }
    assert changes > 6


def test_purging_between_any_two_steps_of_a_delta_changes_nothing_of_it(tmp_path: Path) -> None:
    ends = shop(12)[1]
    outcomes = set()
    for eager in (False, True):
        folder = tmp_path / str(eager)
        folder.mkdir()
        site = Site(folder, shop(12)[0])
        seen = []
        for number in (2, 5, 8, 11):
            for step in ("plan", "attempt", "publish", "read", "record"):
                if step == "plan":
                    plan = site.plan(ends[number])
                elif step == "attempt":
                    mine = site.attempt(plan)
                elif step == "publish":
                    manifest = site.chain.publish(mine)
                elif step == "read":
                    assert [find_fault(site.store, file) for file in manifest.files] == [None] * len(manifest.files)
                    seen.append(manifest.canonical())
                else:
                    site.publish(plan, *TABLES)
                if eager:
                    purge(site.settings, NOW)
                    aged(site, 2)
        outcomes.add(tuple(seen))
        assert bool(files(site)) is not eager
    assert len(outcomes) == 1


def test_the_command_lists_and_removes(site: Site, plans: list[Plan]) -> None:
    command = Command(site)
    assert command("purge").splitlines()[-1] == "0 folders removed"
    lines = command("purge", "--dry-run", "--older-than", "0d").splitlines()
    assert lines[-1] == "2 folders would be removed"
    assert plans[0].start in lines[1]
    assert command("purge", "--older-than", "1h").splitlines()[-1] == "0 folders removed"
    done = json.loads(command("purge", "--older-than", "0d", as_json=True))
    assert [one["start_seqno"] for one in done] == [plan.start_seqno for plan in plans[:2]]
    assert command("purge", "--older-than", "0d").splitlines()[-1] == "0 folders removed"


def test_a_record_of_a_newer_generation_is_of_the_older_ones_too(site: Site, plans: list[Plan]) -> None:
    follows = Followed(name="0001", stop_seqno=plans[1].stop_seqno)
    newer = site.generation.model_copy(update={"name": "0002", "shift": 10, "follows": follows})
    site.chain.begin(newer)
    taken_over = of(site, plans[2])
    plan = site.chain.extend(plans[0].model_copy(update={"generation": "0002", "shift": 10}))
    site.store.delete(f"{site.chain.folder('0001', plans[1].start_seqno)}/published.json")
    assert purge(site.settings, NOW) == []
    record = Published(source="shop", generation="0002", stop=plan.stop, stop_seqno=plan.stop_seqno, tables={})
    site.store.create(f"{site.chain.folder('0002', plan.start_seqno)}/published.json", record.canonical())
    assert [one.start_seqno for one in purge(site.settings, NOW)] == [plan.start_seqno for plan in plans[:2]]
    assert set(files(site)) == taken_over
