"""Where the records of a table begin: the same by published records as by all manifests."""

from __future__ import annotations

import random

import pytest

from loader.materialise.merge.published_record import publish
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.documents import Barrier, Manifest, Plan, StagedFile, TableFilter
from tests.support.memory_store import MemoryStore
from tests.unit.pipeline.forged import forged_manifest, forged_plan
from tests.unit.pipeline.site import GENERATION

NAMES = ("a", "b", "c")
STATEMENTS = (
    "CREATE TABLE {0} (id INT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS {0} (id INT PRIMARY KEY)",
    "DROP TABLE {0}",
    "RENAME TABLE {0} TO {1}",
    "TRUNCATE TABLE {0}",
)

CREATE, DROP = "CREATE TABLE a (id INT PRIMARY KEY)", "DROP TABLE a"


def barrier(manifest: Manifest, number: int, chosen: random.Random) -> Barrier:
    names = chosen.sample(NAMES, 2)
    statement = chosen.choice(STATEMENTS).format(*names)
    seqno = manifest.start_seqno + 10 + number
    return Barrier(
        seqno=seqno, position=f"binlog.000001:{seqno % 10**12}", statement=statement, database="shop", sql_mode=0,
        mariadb=False, tables=tuple(f"shop.{name}" for name in names if f" {name}" in statement),
    )  # fmt: skip


def plan_and_manifest(number: int, chosen: random.Random) -> tuple[Plan, Manifest]:
    manifest = forged_manifest(number)
    barriers = tuple(barrier(manifest, place, chosen) for place in range(chosen.randrange(3)))
    return forged_plan(number), manifest.model_copy(update={"barriers": barriers})


@pytest.mark.parametrize("seed", range(25))
def test_records_tell_what_all_manifests_tell(seed: int) -> None:
    chosen = random.Random(seed)
    store, without = MemoryStore(), MemoryStore()
    for one in (store, without):
        PlanChain(one, "shop").begin(GENERATION)
    for number in range(12):
        plan, manifest = plan_and_manifest(number, chosen)
        for one in (store, without):
            PlanChain(one, "shop").extend(plan)
            PlanChain(one, "shop").publish(manifest)
        for name in NAMES:
            table = TableName("shop", name)
            told = Chain(store, "shop", "0001").find_origin(table, manifest.stop_seqno)
            every = Chain(without, "shop", "0001").find_origin(table, manifest.stop_seqno)
            # A dropped table without a record has nothing to be applied: where it began is not noted.
            assert (told.last, told.dropped) == (every.last, every.dropped) or (told.dropped and every.dropped), (
                number,
                name,
            )
        if chosen.random() < 0.5:
            publish(Chain(store, "shop", "0001"), manifest, [])


def staged(
    number: int, *statements: str, rows: tuple[int, ...] = (), exclude: tuple[str, ...] = ()
) -> tuple[Plan, Manifest]:
    """An interval with statements at offsets 10, 20, ... after its start, and records of `shop.a` at such offsets."""
    manifest, plan = forged_manifest(number, "shop.a"), forged_plan(number)
    start = manifest.start_seqno
    barriers = tuple(
        Barrier(
            seqno=start + 10 * (place + 1), position=manifest.start, statement=statement, database="shop", sql_mode=0,
            mariadb=False, tables=("shop.a",),
        )
        for place, statement in enumerate(statements)
    )  # fmt: skip
    changed = {"min_seqno": start + min(rows, default=1), "max_seqno": start + max(rows, default=1)}
    files: tuple[StagedFile, ...] = tuple(file.model_copy(update=changed) for file in manifest.files if rows)
    filters = TableFilter(include=("shop.*",), exclude=exclude)
    manifest = manifest.model_copy(update={"barriers": barriers, "files": files})
    return plan.model_copy(update={"tables": filters}), manifest


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("intervals", "dropped", "made"),
    [
        ([staged(0, CREATE, DROP), staged(1)], True, 0),
        ([staged(0, CREATE, DROP, rows=(15,)), staged(1)], True, 0),
        ([staged(0, CREATE, DROP), staged(1, rows=(5,))], False, None),
        ([staged(0, CREATE, DROP), staged(1, exclude=("shop.a",)), staged(2)], False, None),
        ([staged(0, CREATE), staged(1, exclude=("shop.a",)), staged(2)], False, None),
        ([staged(0, CREATE), staged(1, exclude=("shop.b",)), staged(2)], False, 9),
        ([staged(0, CREATE), staged(1, exclude=("shop.a",)), staged(2, DROP)], True, 0),
    ],
)
def test_what_was_not_read_is_unknown(
    intervals: list[tuple[Plan, Manifest]], dropped: bool, made: int | None, recorded: bool
) -> None:
    store = MemoryStore()
    plans = PlanChain(store, "shop")
    plans.begin(GENERATION)
    for plan, manifest in intervals:
        plans.extend(plan)
        plans.publish(manifest)
        if recorded and manifest is not intervals[-1][1]:
            publish(Chain(store, "shop", "0001"), manifest, [])
    chain, stop = Chain(store, "shop", "0001"), intervals[-1][1].stop_seqno
    assert chain.find_origin(TableName("shop", "a"), stop).dropped == dropped
    others = {str(file.name) for file in intervals[-1][1].files}
    begin = intervals[0][1].start_seqno
    assert chain.creation_seqnos(stop, others) == ({} if made is None else {"shop.a": made and begin + made})
