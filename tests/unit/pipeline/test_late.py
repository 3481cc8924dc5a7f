"""Attempts that are slow, dead, or wake up when others are long done: what they write is never seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loader.pipeline import intervals, purge, verify_interval
from loader.staging.documents import Manifest, Plan
from tests.unit.pipeline.site import Site, shop
from tests.unit.pipeline.test_purge import NOW, TABLES, aged

_CHECKOUT = Path(__file__).resolve().parents[3]
BEFORE_IT_WON = ["part.before", "part.after", "manifest.before"]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, shop(12)[0])


@pytest.fixture
def plans(site: Site) -> list[Plan]:
    ends = shop(12)[1]
    return [site.plan(ends[number]) for number in (5, 11)]


def started(site: Site, plan: Plan, point: str) -> subprocess.Popen[bytes]:
    """An extraction that is killed at a point, or with `:stop` stops itself there."""
    argv = [sys.executable, "-m", "tests.unit.pipeline.attempt", str(site.folder), str(plan.start_seqno), "zombie"]
    return subprocess.Popen(argv, cwd=_CHECKOUT, env=os.environ | {"LOADER_FAILPOINT": point})


def stopped(site: Site, plan: Plan, point: str) -> subprocess.Popen[bytes]:
    process = started(site, plan, f"{point}:stop")
    state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert state is not None
    assert state.si_status == signal.SIGSTOP
    return process


def woken(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGCONT)
    return process.wait()


def visible(site: Site) -> dict[str, bytes]:
    """Every document, and every file that a manifest names."""
    documents = {key: data for key, data in site.objects().items() if key.endswith(".json")}
    manifests = [Manifest.read(data, key) for key, data in documents.items() if key.endswith("manifest.json")]
    return documents | {file.key: site.store.get(file.key) for one in manifests for file in one.files}


@pytest.mark.parametrize("point", BEFORE_IT_WON)
def test_a_zombie_past_its_successor_changes_nothing(site: Site, plans: list[Plan], point: str) -> None:
    zombie = stopped(site, plans[0], point)
    assert site.chain.manifest("0001", plans[0].start_seqno) is None
    for plan in plans:
        site.extract(plan, "successor")
    site.publish(plans[1], *TABLES)
    before, states = visible(site), intervals(site.settings)
    assert woken(zombie) == 0
    assert visible(site) == before
    assert [one.model_copy(update={"age": 0}) for one in intervals(site.settings)] == [
        one.model_copy(update={"age": 0}) for one in states
    ]
    assert [verify_interval(site.settings, plan.start_seqno) for plan in plans] == [[], []]
    aged(site, 2)
    assert {(one.what, one.attempt) for one in purge(site.settings, None)} == {("attempt", "zombie")}
    assert visible(site) == before


@pytest.mark.parametrize("point", BEFORE_IT_WON)
def test_a_zombie_past_a_purge_of_its_interval_changes_nothing(site: Site, plans: list[Plan], point: str) -> None:
    zombie = stopped(site, plans[0], point)
    manifest = site.extract(plans[0], "successor")
    site.publish(plans[0], *TABLES)
    aged(site, 2)
    purge(site.settings, NOW)
    documents = {key: data for key, data in site.objects().items() if key.endswith(".json")}
    woken(zombie)  # it may miss files of its own, which were purged
    assert {key: data for key, data in site.objects().items() if key.endswith(".json")} == documents
    assert site.chain.manifest("0001", plans[0].start_seqno) == manifest
    aged(site, 2)
    purge(site.settings, NOW)
    assert {key for key in site.objects() if key.endswith(".csv")} == set()


def test_a_zombie_that_had_won_is_adopted(site: Site, plans: list[Plan]) -> None:
    zombie = stopped(site, plans[0], "manifest.after")
    manifest = site.extract(plans[0], "successor")
    assert {file.key.split("/")[3] for file in manifest.files} == {"zombie"}
    before = visible(site)
    assert woken(zombie) == 0
    assert visible(site) == before


@pytest.mark.parametrize("point", BEFORE_IT_WON)
def test_a_dead_attempt_leaves_nothing_to_be_seen_and_the_next_one_all(
    site: Site, plans: list[Plan], point: str
) -> None:
    assert started(site, plans[0], point).wait() == -signal.SIGKILL
    assert [key for key in visible(site) if not key.endswith(("plan.json", "generation.json"))] == []
    assert [one.state for one in intervals(site.settings)] == ["planned", "planned"]
    manifest = site.extract(plans[0], "successor")
    assert {file.key.split("/")[3] for file in manifest.files} == {"successor"}
    assert verify_interval(site.settings, plans[0].start_seqno) == []
