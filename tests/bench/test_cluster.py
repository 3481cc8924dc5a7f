"""The short form of the benchmark of clusters: loads and deltas run on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.spark_cluster import spark_cluster
from tests.bench.cluster import measure

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_both_sides_are_measured(tmp_path: Path) -> None:
    with spark_cluster(tmp_path / "cluster", 2) as cluster:
        one, other, log_bytes = measure(cluster, 1000, 1000)
    assert log_bytes > 100_000
    assert len(one) == len(other) == 2
