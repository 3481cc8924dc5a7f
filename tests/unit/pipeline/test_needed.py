"""The first place in the log that an extraction still reads."""

from __future__ import annotations

import pytest

from loader.model.position import Position
from loader.pipeline.reports.retention import oldest_needed_position
from loader.staging.chain import PlanChain
from loader.staging.documents import HeldGroup
from tests.support.memory_store import MemoryStore
from tests.unit.staging.test_chain import GENERATION, manifest, plan

HELD = HeldGroup(xid="x", file="binlog.000001", start=150, end=190)


@pytest.fixture
def chain() -> PlanChain:
    made = PlanChain(MemoryStore(), "shop")
    made.begin(GENERATION)
    return made


def needed(chain: PlanChain) -> int:
    found = oldest_needed_position(chain, GENERATION)
    assert found == Position("binlog", 1, found.logpos)
    return found.logpos


def test_nothing_is_planned(chain: PlanChain) -> None:
    assert needed(chain) == 4


def test_what_is_staged_is_needed_no_more(chain: PlanChain) -> None:
    first, second, third = plan(4, 100), plan(100, 200), plan(200, 300)
    chain.extend(first)
    assert needed(chain) == 4
    chain.publish(manifest(first))
    assert needed(chain) == 100
    chain.extend(second)
    chain.extend(third)
    assert needed(chain) == 100, "the first of several that are not staged"
    chain.publish(manifest(second))
    assert needed(chain) == 200
    chain.publish(manifest(third))
    assert needed(chain) == 300


def test_a_held_group_is_needed_until_its_outcome(chain: PlanChain) -> None:
    first, second = plan(4, 200), plan(200, 300)
    chain.extend(first)
    chain.publish(manifest(first).model_copy(update={"held": (HELD,)}))
    assert needed(chain) == 150
    chain.extend(second)
    assert needed(chain) == 150
    chain.publish(manifest(second))
    assert needed(chain) == 300
