"""Tables that become histories: no change may be in their load and in the log after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.initial_load.run import find_staged_loads, stage_tables
from loader.model.position import Position
from loader.spark.workers import Threads
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer
from tests.support.planned_loads import change_after_plan

pytestmark = pytest.mark.integration


def test_a_load_in_chunks_is_no_load_of_a_history(
    source: SourceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")

    change_after_plan(monkeypatch, lambda: source.run("INSERT INTO t VALUES (2)"))
    spec = spec_of(source, tmp_path)
    (chunked,) = stage_tables(Threads(1), spec).tables
    assert chunked.rows == 2
    assert Position.parse(chunked.position) < Position.parse(chunked.exact_at)
    history = spec.model_copy(update={"modes": (((f"{source.schema}.*",), "history"),)})
    assert find_staged_loads(history) is None
    (whole,) = stage_tables(Threads(1), history).tables
    assert (whole.status, whole.rows, whole.position) == ("staged", 2, str(source.log_end()))
    for one in (spec, history):
        found = find_staged_loads(one)
        assert found
        assert found.tables[0].manifest == whole.manifest
