"""The benchmark's own short form: it runs, and both programs saw the same changes."""

from __future__ import annotations

import pytest

from tests.bench.codec import compared, first_row, listed, walked
from tests.bench.logs import bulk, narrow, repeated, small
from tests.bench.peers import loader, mysqlbinlog

pytestmark = pytest.mark.integration


def test_the_benchmark_measures() -> None:
    for log in (bulk(1000), small(1000)):
        figure = compared(log, loader(), mysqlbinlog(), 1)
        assert figure["ratio"] > 0
        assert figure["changes per second"] > 0
        assert walked(log)["walk with checksums, MB/s"] > 0
        with repeated(log, 2) as files:
            assert compared(files, loader(2), loader(), 1)["ratio"] > 0
        assert all(figure["ratio"] > 0 for figure in listed(log, 1))
    assert narrow(1000).changes == 1000
    assert first_row(bulk(1000))["seconds to the first row"] > 0
