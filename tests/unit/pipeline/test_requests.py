"""What a run asks of the store does not depend on how many intervals there are behind it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.airflow.finished_work import done_before
from loader.doctor import page
from loader.initial_load.loads import Loads
from loader.materialise.maintain.snapshot_retention import find_viewed_snapshots
from loader.materialise.merge.published_record import publish
from loader.materialise.merge.table_selection import changed_tables, known_tables, merge_steps
from loader.materialise.plan.interval_chain import Chain
from loader.materialise.spec import TableResult
from loader.model.gtid import MysqlGtid
from loader.model.position import Position
from loader.model.table import Column, TableName, TableSchema
from loader.page.reports.source_report import NEWEST, ReportReader
from loader.pipeline.chain import chain_begin, failover, planning
from loader.pipeline.reports import lag
from loader.pipeline.skips import search
from loader.pipeline.skips.search import Place
from loader.pipeline.skips.states import SkipStates
from loader.settings import SourceSettings
from loader.staging.chain import Checkpoint, PlanChain
from loader.staging.documents import Manifest
from loader.staging.entries import UnloggedChanges
from loader.staging.notes.outdated_records import OutdatedNotes, is_outdated
from loader.staging.notes.skips import RowCounts, SkipRecord, Skips, find_skips
from loader.staging.published import Published
from loader.staging.schemas import SchemaStore
from loader.store.registry import open_store
from loader.verify.expressions import Row
from loader.verify.spec import TableDifference, TableSums, VerifyResult
from tests.unit.extract.intervals import IDENTITY
from tests.unit.pipeline.forged import EPOCH, STEP, TABLE, UUID, ForgedStore, forged_manifest, position
from tests.unit.pipeline.site import MARK, settings_of

FEW, MANY = 100, 200_100
"""Both end in the middle of a log file: to find the last interval before the start of one takes a few more requests."""
Work = Callable[[SourceSettings, ForgedStore], object]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceSettings:
    """Of a source whose server is not asked: it has a log of one interval more than is staged."""

    @contextmanager
    def nobody(*_: object) -> Iterator[None]:
        yield None

    monkeypatch.setattr(planning, "connected", nobody)
    monkeypatch.setattr(planning.server_facts, "check_settings", lambda _: None)
    monkeypatch.setattr(planning, "check_identity", lambda *_: None)
    monkeypatch.setattr(chain_begin, "check_continuity", lambda *_: None)
    monkeypatch.setattr(page, "check_continuity", lambda *_: None)
    monkeypatch.setattr(
        planning,
        "_read_source",
        lambda _c, _s, _l, start, *_: planning._SourceState(
            start_after(start), [], "", (), False, True, [], UnloggedChanges(), UnloggedChanges(), []
        ),
    )
    monkeypatch.setattr(planning, "find_stops", lambda _log, interval, _limits: [interval.stop])
    monkeypatch.setattr(lag, "check_server", lambda _: (IDENTITY, position(MANY + 1)))
    monkeypatch.setattr(lag, "_bytes_between", lambda *_: 0)
    monkeypatch.setattr(lag, "source_runway", lambda _: None)
    monkeypatch.setattr(chain_begin, "connected", nobody)
    monkeypatch.setattr(chain_begin, "check_identity", lambda _: IDENTITY)
    monkeypatch.setattr(chain_begin.server_facts, "log_end", lambda _: position(MANY + 1))
    monkeypatch.setattr(chain_begin, "find_log_position", lambda *_: position(0))
    monkeypatch.setattr(failover, "connected", nobody)
    monkeypatch.setattr(failover.server_facts, "read_identity", lambda _: IDENTITY)
    monkeypatch.setattr(failover.server_facts, "check_version", lambda _: None)
    monkeypatch.setattr(failover.continuity, "check_log_holds", lambda *_: None)
    monkeypatch.setattr(failover.continuity, "executed_gtids", lambda _: "")
    monkeypatch.setattr(failover, "log_checkpoint", lambda _, place: Checkpoint(place, "", MARK))
    monkeypatch.setattr(failover, "known_until", lambda *_: "")
    return settings_of(tmp_path)


def start_after(start: Any) -> Any:
    """Where the interval ends that begins there."""
    return type(start)(start.basename, start.lognum, start.logpos + STEP)


@contextmanager
def opened(store: ForgedStore) -> Iterator[ForgedStore]:
    """Every module of the loader opens this store."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("loader.") and getattr(module, "open_store", None) is open_store:
                patch.setattr(module, "open_store", lambda _: store)
        yield store


def requests(work: Work, settings: SourceSettings, store: ForgedStore) -> Counter[str]:
    with opened(store):
        for kind in ("planned", "staged", "recorded"):
            hint(store, kind, naming(newest(store).start_seqno))
        work(settings, store)  # the second time it is a repetition
        store.requests.clear()
        work(settings, store)
    return store.requests


def chain_of(store: ForgedStore) -> PlanChain:
    return PlanChain(store, "shop")


def newest(store: ForgedStore) -> Manifest:
    return forged_manifest(store.count - 1)


def extract(settings: SourceSettings, store: ForgedStore) -> None:
    """What an extraction asks besides the log: of the interval behind the newest staged one."""
    chain, start = chain_of(store), position(store.count)
    generation = chain.require_generation()
    chain.extend(newest_plan(store))
    job = pipeline.extract_job(settings, start.seqno())
    assert done_before(job) is None
    SchemaStore(store, "shop").given_keys("0001", start.seqno(), start.seqno() + STEP)
    assert find_skips(chain, newest_plan(store)) == ()
    assert chain.checkpoint(generation, start).position == start


def newest_plan(store: ForgedStore) -> Any:
    from tests.unit.pipeline.forged import forged_plan

    return forged_plan(store.count)


def materialise(settings: SourceSettings, store: ForgedStore) -> None:
    """What a merge asks besides the warehouse: over one interval that is not applied yet."""
    last = forged_manifest(store.count)
    store.objects.setdefault(f"shop/0001/{last.start_seqno:020d}/plan.json", newest_plan(store).canonical())
    store.objects.setdefault(f"shop/0001/{last.start_seqno:020d}/manifest.json", last.canonical())
    store.objects.pop(f"shop/0001/{last.start_seqno:020d}/published.json", None)
    if "shop/0001/newest/recorded.json" in store.objects:
        hint(store, "recorded", naming(newest(store).start_seqno))
    done_before(pipeline.materialise_job(settings, last.stop_seqno))
    chain = Chain(store, "shop", "0001")
    assert chain.interval_ending_at(None) == chain.interval_ending_at(last.stop_seqno) == last
    record = chain.newest_published()
    assert record is not None and record.stop_seqno == last.start_seqno
    table = TableName.parse(TABLE)
    assert table in changed_tables(chain, record, last.stop_seqno)
    assert list(merge_steps(chain, record.stop_seqno, last.stop_seqno)) == []
    assert table in known_tables(chain, record)
    assert chain.captures(last.start_seqno, table)
    assert chain.covering_intervals(record.stop_seqno, last.stop_seqno) == (last,)
    never = TableName("shop", "never_loaded")
    if str(never) not in record.behind:  # a quarantined table is not looked at until it is released
        assert chain.find_origin(never, last.stop_seqno).seqno is None
    at = {"applied_seqno": last.stop_seqno, "complete_through": last.stop_seqno}
    publish(chain, last, [TableResult(table=TABLE, status="applied", snapshot=2, **at)])


def loaded_inside(_: SourceSettings, store: ForgedStore) -> None:
    """A table that stands inside an interval, as after an initial load."""
    last = newest(store)
    found = Chain(store, "shop", "0001").covering_intervals(last.start_seqno - 7, last.stop_seqno)
    assert [one.start_seqno for one in found] == [forged_manifest(store.count - 2).start_seqno, last.start_seqno]


def pages_of(settings: SourceSettings) -> None:
    """What the status pages ask, the first time and later."""
    reader = ReportReader(lambda _: settings)
    for _ in range(2):
        report = reader.read("shop")
        assert (report.error, len(report.intervals)) == (None, NEWEST)


def paused_and_resumed(settings: SourceSettings) -> None:
    (paused,) = pipeline.pause(settings, [TABLE], "somebody", "it waits")
    assert (paused.table, pipeline.resume(settings, [TABLE])) == (TABLE, (paused,))


def skipped(settings: SourceSettings, store: ForgedStore) -> None:
    """What `loader skip` asks for a staged transaction, by its position, seqno and GTID, and what `loader status` asks."""
    number = store.count // 2 + 3
    place, seqno = position(number), position(number).seqno()
    named = (Place(position=place), Place(seqno=seqno + 2), Place(gtid=MysqlGtid(UUID, number + 1)))
    parts = [search._part(settings, chain_of(store), one) for one in named]
    assert [one.staged for one in parts] == [forged_manifest(number)] * 3
    rows = (RowCounts(table=TABLE, events=1, inserts=1),)
    Skips(store, "shop").keep(
        SkipRecord(
            source="shop", generation="0001", start=str(place), seqno=seqno + 2, rows=rows, reason="", by="", since=EPOCH
        )
    )  # fmt: skip
    assert [one.state for one in SkipStates(chain_of(store)).all()] == ["not used"]


def followed(settings: SourceSettings, store: ForgedStore) -> None:
    """The second time the newest generation begins there already."""
    assert pipeline.follow_to(settings, position(store.count)).follows is not None


class Rows:
    """The snapshot of a server: of one table, at the end of its log."""

    def __init__(self, end: Position) -> None:
        self.position, self.tables, self.identity = end, [TableName.parse(TABLE)], IDENTITY

    def sums(self, table: TableName, *, sampled: bool) -> TableSums:
        schema = TableSchema(table, (Column("id", "int"),), ("id",))
        return TableSums(definition=schema.as_dict(), rows=1, buckets=1, sums={0: (1, 1)})

    def rows(self, *_: object) -> Counter[Row]:
        return Counter([("1",)])


def verify(settings: SourceSettings, store: ForgedStore) -> None:
    """What a comparison asks besides the warehouse and the server. Rows differ, so it looks for skips as well."""
    verification = import_module("loader.pipeline.verification")  # the package has a function of that name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verification, "connected", lambda *_: nullcontext())
        patch.setattr(verification, "captured_tables", lambda *_: [])
        patch.setattr(verification, "server_snapshot", lambda *_: nullcontext(Rows(position(store.count + 1))))
        with pipeline.verification(settings) as opened:
            assert opened.delta is not None
            opened.comparison(None)
            difference = TableDifference(table=TABLE, rows=1, compared=1, buckets=(0,), samples=(("2",),))
            found = opened.finish(VerifyResult(tables=(difference,)).model_dump())
    assert [(one.status, one.differences) for one in found.tables] == [("different", 2)]


WORK: dict[str, Work] = {
    "begin": lambda settings, _: pipeline.begin(settings),
    "begin at a place": lambda settings, _: pipeline.begin_at(settings, str(position(0))),
    "loads": lambda settings, store: Loads(store, "shop", "0001").newest_followed(TableName.parse(TABLE)),
    "pause and resume": lambda settings, _: paused_and_resumed(settings),
    "follow": followed,
    "position": lambda settings, _: pipeline.plan_interval(settings, run="dag/run"),
    "unfinished": lambda settings, _: pipeline.unfinished(settings),
    "extract": extract,
    "materialise": materialise,
    "a table inside an interval": loaded_inside,
    "status": lambda settings, _: pipeline.status(settings),
    "intervals": lambda settings, _: pipeline.intervals(settings, 20),
    "status pages": lambda settings, _: pages_of(settings),
    "intervals of one": lambda settings, store: pipeline.interval(settings, newest(store).start_seqno),
    "release": lambda settings, _: pipeline.release(settings),
    "doctor": lambda settings, _: page.continues(settings),
    "replay": lambda settings, store: pipeline.intervals_since(settings, newest(store).start_seqno),
    "tables": lambda settings, _: pipeline.view(settings),
    "verify": verify,
    "maintain": lambda _, store: find_viewed_snapshots(store, "shop", "0001", EPOCH + timedelta(days=1)),
    "purge of lost attempts": lambda settings, _: pipeline.purge(settings, None),
    "purge": lambda settings, _: pipeline.purge(settings, timedelta(days=1)),
}


@pytest.mark.parametrize("name", WORK)
def test_requests_do_not_grow_with_the_number_of_intervals(name: str, settings: SourceSettings) -> None:
    few, many = (requests(WORK[name], settings, ForgedStore(count)) for count in (FEW, MANY))
    assert many == few
    assert few.total() < (450 if name == "status pages" else 150)


def test_requests_for_a_gtid_grow_with_the_logarithm_of_the_number_of_intervals(settings: SourceSettings) -> None:
    few, many = (requests(skipped, settings, ForgedStore(count)) for count in (FEW, MANY))
    assert many.total() < few.total() + 150


def noted(store: ForgedStore, record: Published) -> bool:
    return is_outdated(store, record.source, record.generation, record.stop_seqno)


def test_a_load_of_many_tables_notes_an_outdated_record_once(settings: SourceSettings) -> None:
    store = ForgedStore(20)
    chain = chain_of(store)
    notes, record = OutdatedNotes(chain, "0001"), chain.published("0001", newest(store).start_seqno)
    assert record is not None
    notes.add()
    assert noted(store, record)
    store.requests.clear()
    notes.add()
    assert store.requests.total() == 1, store.requests
    with opened(store):
        materialise(settings, store)  # another run publishes a record while tables are loaded
    newer = chain.published("0001", newest(store).stop_seqno)
    assert newer is not None and not noted(store, newer)
    notes.add()
    assert noted(store, newer)


@pytest.mark.parametrize("behind", [{"shop.stopped": position(50).seqno()}, {"shop.never_loaded": 0}])
@pytest.mark.parametrize("name", ["position", "materialise", "status", "intervals"])
def test_a_table_that_stopped_long_ago_costs_no_requests(
    name: str, behind: dict[str, int], settings: SourceSettings
) -> None:
    few, many = (requests(WORK[name], settings, ForgedStore(count, behind)) for count in (FEW, MANY))
    assert many == few


def hint(store: ForgedStore, kind: str, data: bytes | None) -> None:
    key = f"shop/0001/newest/{kind}.json"
    store.objects.pop(key, None)
    if data is not None:
        store.objects[key] = data


def naming(start: int) -> bytes:
    return b'{"format":1,"start_seqno":%d}' % start


@pytest.mark.parametrize("kind", ["planned", "staged", "recorded"])
@pytest.mark.parametrize(
    ("data", "most"),
    [
        (None, 20),
        (b"", 20),
        (b"[1]", 20),
        (naming(0), 20),
        (naming(position(7).seqno() + 1), 20),
        (naming(position(MANY + 50).seqno()), 20),
        (naming(position(MANY - 3).seqno()), 20),
    ],
    ids=["lost", "empty", "another document", "before all", "inside an interval", "after all", "stale"],
)
def test_a_hint_decides_nothing(kind: str, data: bytes | None, most: int, settings: SourceSettings) -> None:
    store = ForgedStore(MANY)
    hint(store, kind, data)
    chain = chain_of(store)
    head, staged, record = chain.newest_plan("0001"), chain.newest_manifest("0001"), chain.newest_published("0001")
    assert head is not None and head.start_seqno == newest(store).start_seqno
    assert staged == newest(store)
    assert record is not None and record[1].stop_seqno == newest(store).stop_seqno
    assert chain.unfinished("0001") == []
    assert store.requests.total() < 15 * most
