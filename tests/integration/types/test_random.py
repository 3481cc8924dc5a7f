"""Tables of random columns and values, by a seed: a few in every run of the tests, as many as time allows in `make fuzz`.

LOADER_FUZZ_SEED is the seed, which is printed, and LOADER_FUZZ_SECONDS how long it goes on for each server.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from random import Random

import pytest

from tests.integration.binlog.source import Source
from tests.integration.types.kind import Kind
from tests.integration.types.kinds import all_tables, decimal
from tests.integration.types.tables import TypedTable, run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(0)]
SEED = os.environ.get("LOADER_FUZZ_SEED", "1")
SECONDS = float(os.environ.get("LOADER_FUZZ_SECONDS", "4"))


def random_decimal(random: Random) -> Kind:
    """A DECIMAL of any shape."""
    precision = random.randint(1, 65)
    return decimal(precision, random.randint(0, min(30, precision)))


def test_random_tables(source: Source) -> None:
    every = [kind for kinds in all_tables(source).values() for kind in kinds if kind.edges]
    done: Counter[str] = Counter()
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        random = Random(f"{SEED}/{done['tables']}")
        kinds = [random_decimal(random), *random.sample(every, random.randint(1, 40))]
        image, metadata = random.choice(("FULL", "MINIMAL", "NOBLOB")), random.choice(("FULL", "MINIMAL"))
        print(f"seed {SEED}, table {done['tables']}: {len(kinds)} columns, image {image}, metadata {metadata}")
        source.run(f"SET SESSION binlog_row_image = {image}", f"SET GLOBAL binlog_row_metadata = {metadata}")
        done["values"] += run(TypedTable(source, "fuzzed", kinds, random, least=random.randint(5, 60)))
        done["tables"] += 1
    print(f"seed {SEED}: {done['values']} values of {done['tables']} tables compared")
    assert done["values"] > 1000 * SECONDS
