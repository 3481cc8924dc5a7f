"""Damaged logs whose sums are right: rows that mysqlbinlog shows too, or a known error, in little time.

Every flip of a bit of a small log, and mutations of that and of the corpus at random. LOADER_FUZZ_SEED is the seed, and
LOADER_FUZZ_SECONDS for how long; in a run of all tests only some of what decodes is shown to mysqlbinlog.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from infra.servers import fetch
from loader.errors import LoaderError
from tests.corpus import corpus
from tests.integration.binlog.mutations import events_of, more_than, mutated, shown, staged_of, summed
from tests.unit.binlog.reading import Staged, outcome
from tests.unit.binlog.test_damage import WHOLE
from tests.unit.reader.logs import busy

pytestmark = [pytest.mark.integration, pytest.mark.timeout(0)]
SEED = os.environ.get("LOADER_FUZZ_SEED", "1")
SECONDS = float(os.environ.get("LOADER_FUZZ_SECONDS", "8"))
LONG = "LOADER_FUZZ_SECONDS" in os.environ
SLOW = 2.0  # seconds that nothing of this size may take
LARGEST = 20_000


class Judge:
    """Decodes logs, and asks mysqlbinlog about every `nth` that decodes to rows."""

    def __init__(self, folder: Path, nth: int) -> None:
        self._file = folder / "binlog.000001"
        self._mysqlbinlog = fetch("mysql").tool("mysqlbinlog")
        self._nth = nth
        self.seen: Counter[str] = Counter()

    def judge(self, log: bytes, name: str) -> None:
        began = time.monotonic()
        found = outcome(log)
        assert time.monotonic() - began < SLOW, name
        if isinstance(found, LoaderError):
            assert found.exit_code == 4, f"{name}: {found!r}"
            assert found.what, name
            self.seen[type(found).__name__] += 1
            return
        self.seen["decoded"] += 1
        ours = staged_of(found)
        if ours.total() and self.seen["decoded"] % self._nth == 0:
            theirs, whole = shown(self._mysqlbinlog, log, self._file)
            # Where it stops or falls, by session variables or by text that it cannot print, it shows nothing of rows.
            self.seen["shown" if whole else "shown in part"] += 1
            if whole and more_than(ours, theirs):
                self._file.with_name(f"{name}.log").write_bytes(log)
                pytest.fail(f"{name}: {ours} staged, {theirs} shown by mysqlbinlog")


def test_every_flipped_bit(tmp_path: Path) -> None:
    judge = Judge(tmp_path, 1 if LONG else 40)
    log = bytes(WHOLE.data)
    for at, size in events_of(log):
        for bit in range(at * 8, (at + size - 4) * 8):
            damaged = bytearray(log)
            damaged[bit // 8] ^= 1 << bit % 8
            judge.judge(summed(damaged, [(at, size)]), f"bit {bit % 8} of byte {bit // 8}")
    print(judge.seen)
    assert judge.seen["decoded"] > 1000
    assert judge.seen["shown"] > 20


def logs() -> dict[str, bytes]:
    """The logs that are mutated: built ones, and small ones of the corpus that can be decoded."""
    found = {"every type": bytes(WHOLE.data), "busy": bytes(busy(3).data)}
    for name in corpus.names() if corpus.FOLDER.is_dir() else ():
        data = corpus.read(name)[:LARGEST]
        if data[:4] == b"\xfebin" and len(events_of(data)) > 2 and isinstance(outcome(data, lambda _: False), Staged):
            found[name] = data
    return found


def test_random_mutations(tmp_path: Path) -> None:
    judge, sources = Judge(tmp_path, 1 if LONG else 25), logs()
    began, number = time.monotonic(), 0
    while time.monotonic() - began < SECONDS:
        random = Random(f"{SEED}/{number}")
        name = random.choice(["every type", "busy", random.choice(list(sources))])
        log = mutated(sources[name], random)
        try:
            judge.judge(log, f"mutation {number} of seed {SEED}, of {name.replace('/', '_')}")
        except Exception:
            print(f"seed {SEED}, mutation {number}, of {name}")
            raise
        number += 1
    print(f"seed {SEED}: {number} mutations: {judge.seen}")
    assert number > 20 * SECONDS
