"""Five intervals in every order, each run up to twice: what is out of order is refused or does nothing.

The chain, the store, the extraction and the rules of what may be merged are the real ones; a table of the warehouse is
rows and an applied position that change together. From each state that can be reached every run is tried on a copy of the
store, so the table of outcomes holds for sequences of any length; all 291,720 of each run once or twice are looked up in it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from pathlib import Path

import pytest

from loader.errors import GapError, UsageError
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.plan.merge_plan import plan_stages
from loader.materialise.plan.timeline import TableState, build_timeline
from loader.materialise.rules import DEFAULT
from loader.model.table import TableName, TableSchema
from loader.reader.rows import record_of
from loader.staging.documents import Plan
from tests.unit.pipeline.site import Site, shop

ENDS = (1, 3, 4, 8, 9)
"""The last transaction of each interval."""

TABLES = [TableName("shop", "orders"), TableName("shop", "items")]

Rows = dict[tuple[str | None, ...], str]
Outcome = str


@dataclass
class World:
    """A staging root in a folder of its own, and the tables of a warehouse."""

    site: Site
    applied: dict[TableName, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    rows: dict[TableName, Rows] = field(default_factory=lambda: {table: {} for table in TABLES})
    attempts: int = 0

    def copied(self, folder: Path) -> World:
        shutil.copytree(self.site.folder, folder)
        rows = {table: dict(found) for table, found in self.rows.items()}
        return World(Site(folder, shop(10)[0]), dict(self.applied), rows, self.attempts)

    def seen(self) -> tuple[object, ...]:
        """All that anybody can see, without the names of attempts."""
        manifests = (self.site.chain.manifest("0001", start) for start in self.site.chain.starts("0001"))
        staged = tuple(
            tuple((file.key.split("/", 4)[4], file.sha256) for file in found.files) if found else None
            for found in manifests
        )
        published = [key for key in self.site.objects() if key.endswith("published.json")]
        return staged, published[-1:], repr(self.applied), repr(self.rows)

    def extract(self, plan: Plan) -> Outcome:
        self.attempts += 1
        if self.site.chain.manifest("0001", plan.start_seqno):
            self.site.attempt(plan, f"a{self.attempts}")  # a second attempt that did not look, and loses
            return self._published(plan)
        try:
            self.site.chain.checkpoint(self.site.generation, plan.interval.start)
        except UsageError:
            return "refused"
        return self._published(plan)

    def _published(self, plan: Plan) -> Outcome:
        mine = self.site.attempt(plan, f"b{self.attempts}")
        return "done" if self.site.chain.publish(mine) == mine else "nothing"

    def materialise(self, plan: Plan) -> Outcome:
        chain = Chain(self.site.store, "shop", "0001")
        before = dict(self.applied)
        try:
            last = chain.interval_ending_at(plan.stop_seqno)
        except GapError:
            return "refused"
        assert last is not None
        for table in TABLES:
            self._merge(chain, table, last.stop_seqno)
        if self.applied == before:
            return "nothing"
        self.site.publish(plan, *map(str, TABLES))
        return "done"

    def _merge(self, chain: Chain, table: TableName, target: int) -> None:
        applied = self.applied[table]
        if applied >= target:
            return
        start = max(applied, self.site.generation.start_position.seqno())
        manifests = chain.covering_intervals(start, target)
        schema = self._schema(chain, table)
        timeline = build_timeline(
            table, TableState(schema, applied), target, manifests, (), lambda *_: None, lambda *_: False
        )
        works = plan_stages(table, timeline, manifests, DEFAULT, new=False).works if schema else ()
        rows = self.rows[table]
        for work, file in ((each, file) for each in works for file in each.files):
            for line in self.site.store.get(file.key).decode().splitlines():
                record = record_of(line, work.schema)
                if record.seqno > applied:
                    values = tuple(value.text for value in record.row)
                    assert values not in rows, "applied twice"
                    rows[values] = record.op
        self.applied[table] = target

    def _schema(self, chain: Chain, table: TableName) -> TableSchema | None:
        found = chain.intervals_between(0, 1 << 62)
        return next((one.schema_of(file.schema_id) for one in found for file in one.files_of(table)), None)


@dataclass
class Outcomes:
    """What each run does in each state that can be reached: (state, run) to (outcome, next state)."""

    states: list[tuple[object, ...]]
    table: dict[tuple[int, str], tuple[Outcome, int]]

    def run(self, state: int, number: int) -> int:
        """The state after a whole run of an interval: its extraction, then the materialisation up to its stop."""
        after = self.table[state, f"extract {number}"][1]
        return self.table[after, f"materialise {number}"][1]


RUNS = [f"{stage} {number}" for number in range(5) for stage in ("extract", "materialise")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    folder = tmp_path_factory.mktemp("orders")
    (folder / "0").mkdir()
    log, ends = shop(10)
    first = World(Site(folder / "0", log))
    plans = [first.site.plan(ends[number]) for number in ENDS]
    worlds, states, table = [first], [first.seen()], {}
    for number, world in enumerate(worlds):  # grows while it is gone over
        for run in RUNS:
            stage, which = run.split()
            after = world.copied(folder / f"{number}-{stage}-{which}")
            outcome: Outcome = getattr(after, stage)(plans[int(which)])
            seen = after.seen()
            if seen not in states:
                worlds.append(after)
                states.append(seen)
            table[number, run] = outcome, states.index(seen)
    return Outcomes(states, table)


def test_what_is_refused_or_does_nothing_changes_nothing(outcomes: Outcomes) -> None:
    for (state, _), (outcome, after) in outcomes.table.items():
        assert (outcome == "done") == (after != state)


def test_the_states_are_those_of_a_run_in_order(outcomes: Outcomes) -> None:
    """Intervals are staged one after the other, and applied up to one that is staged: 1 + 2 + ... + 6 states."""
    assert len(outcomes.states) == 21
    for (_, run), (outcome, _) in outcomes.table.items():
        assert outcome in {"done", "nothing", "refused"}, run
    kinds = [outcome for outcome, _ in outcomes.table.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"done": 15 + 35, "nothing": 70 + 35, "refused": 20 + 35}


def orders(often: tuple[int, ...]) -> int:
    """How many orders there are of runs that come so often each."""
    total = 1
    for left in range(1, sum(often) + 1):
        total *= left
    for times in often:
        total //= (1, 1, 2)[times]
    return total


def finals(outcomes: Outcomes, often: tuple[int, ...]) -> dict[int, int]:
    """How many of all orders of whole runs, each coming so often, end in each state."""
    reached: dict[tuple[tuple[int, ...], int], int] = {(often, 0): 1}
    for _ in range(sum(often)):
        following: dict[tuple[tuple[int, ...], int], int] = {}
        for (left, state), count in reached.items():
            for number in (number for number, times in enumerate(left) if times):
                after = outcomes.run(state, number)
                rest = (*left[:number], left[number] - 1, *left[number + 1 :])
                following[rest, after] = following.get((rest, after), 0) + count
        reached = following
    return {state: count for (_, state), count in reached.items()}


def test_every_order_of_runs_ends_in_the_one_final_state_once_they_come_in_order(outcomes: Outcomes) -> None:
    whole = [0]
    for number in range(5):
        whole.append(outcomes.run(whole[-1], number))
    looked_at = 0
    for twice in range(6):
        for chosen in combinations(range(5), twice):
            often = tuple(2 if number in chosen else 1 for number in range(5))
            found = finals(outcomes, often)
            assert sum(found.values()) == orders(often)
            looked_at += orders(often)
            assert set(found) <= set(whole)  # never anything but the work of a run in order
            assert {reduce(outcomes.run, range(5), state) for state in found} == {whole[-1]}
    assert looked_at == 291_720
