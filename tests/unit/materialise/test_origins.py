"""Where the records of a table begin: the same by published records as by all manifests."""

from __future__ import annotations

import random

import pytest

from loader.materialise.merge.published_record import publish
from loader.materialise.plan.interval_chain import Chain
from loader.model.table import TableName
from loader.staging.chain import PlanChain
from loader.staging.documents import Barrier, Manifest, Plan
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
