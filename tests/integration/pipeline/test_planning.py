"""Planning on a real server: nothing for a quiet source, several intervals for a backlog, one winner of a race."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from infra.servers import Server
from loader import pipeline
from loader.extract.spec import TransportSettings
from loader.pipeline import IntervalChosen, chain_of, plan_interval, unfinished
from loader.settings import SourceSettings
from loader.staging.documents import Manifest, Plan
from tests.integration.pipeline.conftest import Source

pytestmark = pytest.mark.integration

Stopped = Callable[[int], None]


def plans(settings: SourceSettings) -> list[Plan]:
    chain = chain_of(settings)
    return chain.plans(chain.require_generation())


def publish(settings: SourceSettings, start_seqno: int) -> None:
    """As an extraction that found nothing."""
    chain = chain_of(settings)
    plan = chain.require_plan("0001", start_seqno)
    chain.publish(
        Manifest(
            source=plan.source, generation=plan.generation, identity=plan.identity, start=plan.start, stop=plan.stop,
            start_seqno=plan.start_seqno, stop_seqno=plan.stop_seqno, files=(), schemas={}, loader_version="1",
        )
    )  # fmt: skip


def test_a_quiet_source_plans_nothing_and_its_log_end_is_known(source: Source) -> None:
    assert plan_interval(source.settings) is None
    source.insert(1)
    first = plan_interval(source.settings)
    assert first is not None and first.new and first.stop == str(source.end())
    publish(source.settings, first.start_seqno)
    for _ in range(2):
        assert plan_interval(source.settings) == first.model_copy(update={"new": False})
        assert len(plans(source.settings)) == 1
    assert pipeline.status(source.settings).log_end == str(source.end()) == first.stop
    source.insert(2)
    assert len(plans(source.settings)) == 1
    found = pipeline.status(source.settings)
    assert (found.log_end, found.planned) == (str(source.end()), first.stop)


def test_a_quiet_source_whose_files_are_read_in_place_plans_nothing(mysql_server: Server, source: Source) -> None:
    files = TransportSettings(kind="file", server=source.settings.server, path=str(mysql_server.log_dir))
    settings = source.settings.model_copy(update={"transport": files})
    assert plan_interval(settings) is None
    source.insert(1)
    first = plan_interval(settings)
    assert first is not None and first.new
    publish(settings, first.start_seqno)
    assert plan_interval(settings) == first.model_copy(update={"new": False})


def test_a_backlog_becomes_intervals_that_are_done_one_by_one(source: Source) -> None:
    source.insert(*range(5))
    source.server.run("FLUSH BINARY LOGS")
    source.insert(*range(5, 10))
    settings = source.limited(transactions=3)
    first = plan_interval(settings)
    made = plans(settings)
    assert first is not None and first.new
    assert len(made) == 4
    assert made[-1].stop == str(source.end())
    assert [plan.start_seqno for plan in made] == [one.start_seqno for one in unfinished(settings)]
    given = []
    while unfinished(settings):
        chosen = plan_interval(settings)
        assert chosen is not None
        given.append(chosen.start_seqno)
        publish(settings, chosen.start_seqno)
    assert given == [plan.start_seqno for plan in made]
    assert plans(settings) == made


def test_runs_of_an_orchestrator_get_one_interval_after_the_other_and_their_own_again(source: Source) -> None:
    source.insert(*range(4))
    settings = source.limited(transactions=1)
    given = []
    for number in range(4):
        chosen = plan_interval(settings, run=f"dag/{number}")
        assert chosen is not None
        given.append(chosen.start_seqno)
        assert plan_interval(settings, run=f"dag/{number}") == chosen.model_copy(update={"new": False})
        publish(settings, chosen.start_seqno)
    assert given == [plan.start_seqno for plan in plans(settings)]
    assert [plan_interval(settings, run=f"dag/{number}").start_seqno for number in range(4)] == given  # type: ignore[union-attr]


def test_limits_that_changed_count_from_the_next_plan_on(source: Source) -> None:
    source.insert(1, 2)
    plan_interval(source.limited(transactions=1))
    made = plans(source.settings)
    source.insert(3, 4)
    assert plan_interval(source.settings) is not None
    assert plans(source.settings) == made
    for plan in made:
        publish(source.settings, plan.start_seqno)
    plan_interval(source.settings)
    assert [plan.stop for plan in plans(source.settings)] == [made[0].stop, made[1].stop, str(source.end())]


def test_all_who_plan_at_once_agree(source: Source) -> None:
    source.insert(*range(12))
    meeting = Barrier(6)

    def race(number: int) -> IntervalChosen | None:
        meeting.wait()
        return plan_interval(source.limited(transactions=1 + number % 3))

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(race, range(6)))
    made = plans(source.settings)  # proves that it is one unbroken chain
    assert {one.start_seqno for one in found if one} == {made[0].start_seqno}
    assert {one.stop for one in found if one} == {made[0].stop}
    for plan in made:
        publish(source.settings, plan.start_seqno)
    plan_interval(source.settings)
    assert plans(source.settings)[-1].stop == str(source.end())


_PROGRAM = """
import sys
from loader.pipeline import plan_interval
from loader.settings import SourceSettings
plan_interval(SourceSettings.model_validate_json(sys.argv[1]))
"""


def process(settings: SourceSettings, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _PROGRAM, settings.model_dump_json()], env=os.environ | env)


@pytest.mark.parametrize("point", ["plan.before", "plan.after"])
def test_planning_that_is_killed_is_taken_up(source: Source, point: str) -> None:
    source.insert(1, 2, 3)
    settings = source.limited(transactions=1)
    assert process(settings, LOADER_FAILPOINT=point).wait() == -signal.SIGKILL
    before = plans(settings)
    assert len(before) == (point == "plan.after")
    while len(plans(settings)) < 3:
        chosen = plan_interval(settings)
        assert chosen is not None
        publish(settings, chosen.start_seqno)
    made = plans(settings)
    assert made[:1] == (before or made[:1])
    assert made[-1].stop == str(source.end())


def test_planning_that_slept_while_others_went_on_changes_nothing(source: Source, stopped: Stopped) -> None:
    source.insert(1, 2, 3)
    sleeper = process(source.limited(transactions=1), LOADER_FAILPOINT="plan.before:stop")
    stopped(sleeper.pid)
    source.insert(4)
    assert plan_interval(source.settings) is not None
    made = plans(source.settings)
    assert [plan.stop for plan in made] == [str(source.end())]
    sleeper.send_signal(signal.SIGCONT)
    assert sleeper.wait() == 0
    assert plans(source.settings) == made


@pytest.fixture
def stopped() -> Stopped:
    """Waits until a process has stopped itself."""

    def wait(pid: int) -> None:
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)

    return wait


def test_tables_are_read_anew_from_the_end_of_the_log_on(source: Source) -> None:
    source.insert(1)
    specs = [pipeline.read_tables_job(source.settings, again=again).spec.model_dump() for again in (False, True)]
    assert [spec["not_before"] for spec in specs] == ["", str(source.end())]
