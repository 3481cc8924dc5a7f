"""The chain of plans: contiguous, without forks, with one winner of every race."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier as Meeting
from typing import Any

import pytest

from loader.errors import DataError, StagedDataError, UsageError
from loader.model.identity import Identity
from loader.staging.chain import Checkpoint, NotLoaded, PlanChain
from loader.staging.document import Document
from loader.staging.documents import Generation, HeldGroup, Manifest, Mark, Plan, TableFilter
from loader.store.local import LocalStore
from tests.support.memory_store import MemoryStore

IDENTITY = Identity(kind="mysql", version="9.7.4", server_id=1, uuid="u")
MARK = Mark(log="first event", last=0, event="")
GENERATION = Generation(source="shop", name="0001", identity=IDENTITY, start="binlog.000001:4", mark=MARK)


def plan(start: int, stop: int, **changes: Any) -> Plan:
    made = Plan(
        source="shop", generation="0001", identity=IDENTITY, start=f"binlog.000001:{start}",
        stop=f"binlog.000001:{stop}", shift=0, tables=TableFilter(include=("shop.*",)),
    )  # fmt: skip
    return made.model_copy(update=changes)


def manifest(of: Plan, version: str = "1") -> Manifest:
    return Manifest(
        source=of.source, generation=of.generation, identity=of.identity, start=of.start, stop=of.stop,
        start_seqno=of.start_seqno, stop_seqno=of.stop_seqno, files=(), schemas={}, loader_version=version,
    )  # fmt: skip


@pytest.fixture
def chain() -> PlanChain:
    made = PlanChain(MemoryStore(), "shop")
    made.begin(GENERATION)
    return made


def test_a_source_without_a_chain_says_so() -> None:
    empty = PlanChain(MemoryStore(), "shop")
    assert empty.generation() is None
    with pytest.raises(NotLoaded, match="nothing was loaded") as caught:
        empty.require_generation()
    assert caught.value.where == {"source": "shop"}


def test_the_newest_generation_counts(chain: PlanChain) -> None:
    assert chain.require_generation() == GENERATION
    second = GENERATION.model_copy(update={"name": "0002", "shift": 100})
    chain.begin(second)
    assert chain.require_generation() == second


def test_plans_are_found_by_their_start_and_the_last_is_the_head(chain: PlanChain) -> None:
    assert chain.newest_plan("0001") is None
    plans = [plan(4, 100), plan(100, 2_000), plan(2_000, 30_000)]
    for one in plans:
        assert chain.extend(one) == one
    assert chain.plans(GENERATION) == plans
    assert chain.newest_plan("0001") == plans[-1]
    assert chain.starts("0001") == [one.start_seqno for one in plans]
    assert chain.require_plan("0001", plans[1].start_seqno) == plans[1]


def test_the_stages_of_the_newest_interval_take_time(chain: PlanChain) -> None:
    assert chain.stage_seconds("0001") == {}
    first, second = plan(4, 100), plan(100, 200)
    chain.extend(first)
    chain.publish(manifest(first))
    assert chain.stage_seconds("0001").keys() == {"extract"}
    chain.note_published("0001", first.start_seqno)
    took = chain.stage_seconds("0001")
    assert took.keys() == {"extract", "materialise"}
    assert all(0 <= seconds < 60 for seconds in took.values())
    chain.extend(second)  # which is not staged, so nothing is known of it
    assert chain.stage_seconds("0001").keys() == {"materialise"}
    chain.store.remove("shop/0001/newest/")
    assert chain.stage_seconds("0001") == {}


def test_another_stop_for_the_same_start_is_not_taken(chain: PlanChain) -> None:
    first, second = plan(4, 100), plan(4, 200, part_bytes=1)
    assert chain.extend(first) == first
    assert chain.extend(second) == first
    assert chain.plans(GENERATION) == [first]


def test_a_plan_that_nobody_made_is_named(chain: PlanChain) -> None:
    with pytest.raises(DataError, match="no interval starts there") as caught:
        chain.require_plan("0001", 77)
    assert caught.value.where == {"source": "shop", "interval": "77"}


@pytest.mark.parametrize("missing", [0, 1])
def test_a_gap_in_the_chain_is_named(chain: PlanChain, missing: int) -> None:
    plans = [plan(4, 100), plan(100, 200), plan(200, 300)]
    for number, one in enumerate(plans):
        if number != missing:
            chain.extend(one)
    with pytest.raises(StagedDataError, match="the chain of intervals is broken") as caught:
        chain.plans(GENERATION)
    after = plans[missing + 1]
    assert (
        caught.value.why == f"an interval starts at {after.start}, but the previous one stops at {plans[missing].start}"
    )


def test_an_overlap_in_the_chain_is_named(chain: PlanChain) -> None:
    chain.extend(plan(4, 100))
    chain.extend(plan(50, 200))
    with pytest.raises(StagedDataError, match="broken"):
        chain.plans(GENERATION)


def test_what_is_no_plan_is_refused_by_its_key() -> None:
    store = MemoryStore()
    chain = PlanChain(store, "shop")
    chain.begin(GENERATION)
    one = chain.extend(plan(4, 100))
    key = f"{chain.folder('0001', one.start_seqno)}/plan.json"
    store.objects[key] = b'{"format":9}'
    with pytest.raises(StagedDataError) as caught:
        chain.plan("0001", one.start_seqno)
    assert caught.value.where == {"key": key}


def test_a_manifest_is_published_once(chain: PlanChain) -> None:
    one = chain.extend(plan(4, 100))
    assert chain.manifest("0001", one.start_seqno) is None
    first = manifest(one)
    assert chain.publish(first) == first
    assert chain.publish(manifest(one, "2")) == first
    assert chain.manifest("0001", one.start_seqno) == first


def test_a_run_keeps_the_interval_it_was_given_first(chain: PlanChain) -> None:
    first, second = (chain.extend(one) for one in (plan(4, 100), plan(100, 200)))
    run = "scheduled__2026-11-21T10:00:00+00:00"
    assert chain.find_run("0001", run) is None
    chain.note_run(first, second.stop_seqno, run)
    chain.note_run(second, second.stop_seqno, run)
    assert chain.find_run("0001", run) == (first, second.stop_seqno)
    assert chain.find_run("0001", run + "x") is None


def test_notes_of_runs_are_no_intervals(chain: PlanChain) -> None:
    one = chain.extend(plan(4, 100))
    chain.note_run(one, one.stop_seqno, "manual__1")
    assert chain.starts("0001") == [one.start_seqno]


WRITES: dict[str, Callable[[PlanChain, int], Document]] = {
    "generation": lambda chain, number: chain.begin(GENERATION.model_copy(update={"shift": number})),
    "plan": lambda chain, number: chain.extend(plan(4, 100 + number)),
    "manifest": lambda chain, number: chain.publish(manifest(plan(4, 100), str(number))),
}


@pytest.mark.parametrize("what", list(WRITES))
def test_all_who_race_adopt_the_same_winner(what: str, tmp_path: Path) -> None:
    for turn in range(10):
        store = LocalStore(f"file://{tmp_path}/{turn}")
        meeting = Meeting(8)

        def race(number: int, store: LocalStore = store, meeting: Meeting = meeting) -> Document:
            meeting.wait()
            return WRITES[what](PlanChain(store, "shop"), number)

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(race, range(8)))
        assert len({document.canonical() for document in found}) == 1
        (stored,) = (info for info in store.list("shop/") if "/newest/" not in info.key)
        assert store.get(stored.key) == found[0].canonical()


def test_the_oldest_of_several_unfinished_intervals_comes_first(chain: PlanChain) -> None:
    plans = [chain.extend(one) for one in (plan(4, 100), plan(100, 200), plan(200, 300))]
    assert chain.unfinished("0001") == plans
    chain.publish(manifest(plans[0]))
    assert chain.unfinished("0001") == plans[1:]
    for one in plans[1:]:
        chain.publish(manifest(one))
    assert chain.unfinished("0001") == []


def test_the_log_stands_as_the_manifest_before_says(chain: PlanChain) -> None:
    first, second = (chain.extend(one) for one in (plan(4, 100), plan(100, 200)))
    assert chain.checkpoint(GENERATION, first.interval.start) == Checkpoint(first.interval.start, "", MARK)
    with pytest.raises(UsageError, match="the previous interval is not staged yet") as caught:
        chain.checkpoint(GENERATION, second.interval.start)
    assert caught.value.hint == f"loader extract --interval {first.start_seqno}"
    held = (HeldGroup(xid="X'61',X'',1", file="binlog.000001", start=50, end=90),)
    mark = Mark(log="first event", last=50, event="transaction")
    chain.publish(manifest(first).model_copy(update={"held": held, "gtids": "0-1-5", "mark": mark}))
    assert chain.checkpoint(GENERATION, second.interval.start) == Checkpoint(second.interval.start, "0-1-5", mark, held)
    assert chain.newest_checkpoint(GENERATION).position == second.interval.start


def test_nothing_is_carried_over_a_gap(chain: PlanChain) -> None:
    chain.publish(manifest(chain.extend(plan(4, 100))))
    with pytest.raises(StagedDataError, match="the chain of intervals is broken"):
        chain.checkpoint(GENERATION, chain.extend(plan(200, 300)).interval.start)
