"""Where the time of merges goes, by the failpoints that they pass."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from loader.materialise.iceberg import branch
from loader.materialise.merge import merge_stages, table_merge

_STEPS = {
    "branch.after": "plan, collapse, branch",
    "delete.after": "delete",
    "insert.after": "insert",
    "publish.after": "publish",
}


@contextmanager
def split() -> Iterator[Counter[str]]:
    """Seconds of all tables that are merged inside, by step; tables that are merged at the same time count each."""
    seconds: Counter[str] = Counter()
    here = threading.local()

    def passed(point: str) -> None:
        now = time.monotonic()
        if point in _STEPS:
            seconds[_STEPS[point]] += now - here.since
        if point in _STEPS or point == "table.before":
            here.since = now

    modules = (branch, merge_stages, table_merge)
    before = [module.failpoint for module in modules]
    for module in modules:
        module.failpoint = passed
    try:
        yield seconds
    finally:
        for module, failpoint in zip(modules, before, strict=True):
            module.failpoint = failpoint
