"""Any log of a table, cut into intervals and merged in any way: what the server has, or had, or did."""

from __future__ import annotations

import signal
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from pyspark.sql import SparkSession

from loader.materialise.rules import TableRule
from loader.materialise.spec import MaterialiseResult
from tests.integration.materialise.kernels.test_native_tasks import work_in_tasks
from tests.integration.materialise.killable import run_until
from tests.integration.materialise.lake import Lake
from tests.integration.materialise.random_logs import Row, Server, between, plain
from tests.integration.materialise.staged_writer import number, position
from tests.support.sweep import IN_SWEEP

pytestmark = pytest.mark.integration

POINTS = ("branch.after", "delete.after", "insert.after", "publish.before", "publish.after")
TRANSACTIONS, BEFORE = 120, 25
LOADED, EXACT = number(1, 1000 + BEFORE), number(1, 1000 + BEFORE + 30)

KINDS = {  # key, image, updates as two records, mode
    "noblob": ("mixed", "NOBLOB", True, "mirror"),
    "kept": ("text", "MINIMAL", False, "soft_delete"),
    "told": ("int", "MINIMAL", False, "history"),
    "bag": ("", "FULL", False, "mirror"),
    "late": ("text", "FULL", False, "mirror"),
}
KINDS |= (
    {
        "plain": ("mixed", "FULL", False, "mirror"),
        "minimal": ("text", "MINIMAL", False, "mirror"),
        "told_twice": ("text", "NOBLOB", True, "history"),
        "bag_told": ("", "FULL", False, "history"),
        "late_minimal": ("int", "MINIMAL", False, "mirror"),
    }
    if IN_SWEEP
    else {}
)
LATE = KINDS.keys() & {"late", "late_minimal"}
RULES = tuple(TableRule(tables=(f"*.{name}",), mode=mode) for name, (*_, mode) in KINDS.items())  # type: ignore[arg-type]


class Run:
    """Tables of all kinds with a log each, loaded; `at` holds of each position what the tables are to be there."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake, self.dice = lake, Random(seed)
        self.servers = {
            name: Server(self.dice, name, key, image, both=both) for name, (key, image, both, _) in KINDS.items()
        }
        self.at: dict[int, dict[str, Counter[Row]]] = {}
        for step in range(TRANSACTIONS):
            seqno = number(1, 1001 + step)
            for name, server in self.servers.items():
                server.transaction(seqno, moves=name != "late_minimal" or seqno > EXACT)
            if seqno == LOADED:
                for server in self.servers.values():
                    server.gone.clear()  # before the load: not known
                self.loaded = {name: list(server.rows.values()) for name, server in self.servers.items()}
                self.seen = {name: dict(self.servers[name].rows) for name in LATE}
            if LOADED <= seqno <= EXACT:
                self._see()
            self.at[seqno] = {name: self._wanted(name) for name in KINDS}

    def _see(self) -> None:
        """A part of the keys of the tables that are loaded by chunks is read now, and not before."""
        for name, seen in self.seen.items():
            rows = self.servers[name].rows
            for key in [key for key in seen.keys() | rows.keys() if self.dice.random() < 0.1]:
                seen.pop(key, None)
                seen.update({key: rows[key]} if key in rows else {})

    def _wanted(self, name: str) -> Counter[Row]:
        server, mode = self.servers[name], KINDS[name][3]
        if mode == "history":
            # The load is inserts of what was there; what came before is not known.
            changes = [(*c.values, c.op, c.seqno, c.offset) for c in server.whole if c.seqno > LOADED]
            return Counter(changes)
        rows = server.bag()
        if mode == "soft_delete":
            gone = server.gone
            return Counter((*row, False) for row in rows.elements()) + Counter((*row, True) for row in gone.values())
        return rows

    def load(self) -> None:
        start = position(1, LOADED % 10**12)
        keys = []
        for name, server in self.servers.items():
            rows = list(self.seen[name].values()) if name in LATE else self.loaded[name]
            exact = position(1, EXACT % 10**12) if name in LATE else start
            keys.append(self.lake.staging.load(server.schema, rows, start, exact=exact))
        done(self.lake.loaded(*keys))

    def stage(self) -> list[int]:
        """Intervals from before the load to the end; their stops."""
        last = 1000 + TRANSACTIONS
        cuts = [1015, *self.dice.sample(range(1026, last), 4)]
        edges = [1005, *sorted(cuts), last]
        for low, high in pairwise(edges):
            tables = []
            for server in self.servers.values():
                part = list(between(server.log, number(1, low), number(1, high)))
                self.dice.shuffle(part)
                tables += [(server.schema, part)] if part else []
            self.lake.staging.interval(position(1, low), position(1, high), tables, parts=self.dice.randint(1, 3))
        return [number(1, edge) for edge in edges[1:]]

    def check(self, through: int) -> None:
        """What the tables have after a merge up to a stop."""
        for name, there in self.at[through].items():
            if name in LATE and through < EXACT:
                continue
            server, mode = self.servers[name], KINDS[name][3]
            more = {"mirror": (), "soft_delete": ("_is_deleted",), "history": ("_op", "_seqno", "_row_offset")}[mode]
            names = [f"`{column.name}`" for column in server.schema.columns]
            found = Counter(
                {tuple(map(plain, row)): n for row, n in self.lake.bag(server.schema.name, *names, *more).items()}
            )
            loaded = self.loaded[name] if mode == "history" else []
            wanted = there + Counter((*row, "I", LOADED, 0) for row in loaded)
            assert found == wanted, (name, list((wanted - found).items())[:3], list((found - wanted).items())[:3])


def done(result: MaterialiseResult) -> None:
    assert result.exit_code == 0, [str(one.error) for one in result.tables if one.error][:3]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", ["threads", "tasks"] if IN_SWEEP else ["threads"])
@pytest.mark.parametrize("seed", range(40 if IN_SWEEP else 1))
def test_any_log_merged_in_any_way(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, seed: int, way: str
) -> None:
    """Some intervals together, some runs twice, one run killed; each time the tables are as the server was there."""
    if way == "tasks":
        work_in_tasks(monkeypatch)
    lake.rules = RULES
    run = Run(lake, seed)
    run.load()
    stops = run.stage()
    groups = sorted({*run.dice.sample([stop for stop in stops[:-1] if stop > LOADED], 1 + IN_SWEEP), stops[-1]})
    killed = run.dice.choice(groups)
    for through in groups:
        if through == killed:
            point = POINTS[seed % len(POINTS)]
            assert run_until(spark, point, lake.merge_spec(through), lake.folder) == -signal.SIGKILL
        done(lake.merged(through))
        run.check(through)
    for through in (groups[0], None):
        assert {one.status for one in lake.merged(through).tables} == {"already"}
    run.check(stops[-1])
