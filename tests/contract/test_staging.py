"""An extraction stages the same bytes on every store, under whatever names its tables have."""

from __future__ import annotations

import hashlib

import pytest

from infra.servers import Server
from loader.model.position import Interval
from loader.store.registry import open_store
from tests.contract.conftest import NewRoot
from tests.integration.binlog.source import Source, extracted, quoted

pytestmark = pytest.mark.integration
KINDS = ["local", "s3", "hdfs"]
TABLES = ["plain", "a/b", "..", "c?d=e", "#LATEST", "漢", "x" * 64]


def test_an_interval_has_the_same_files_on_every_store(mysql_server: Server, new_root: NewRoot) -> None:
    source = Source(mysql_server, "stores")
    start = source.mark()
    for table in TABLES:
        source.run(
            f"CREATE TABLE {quoted(table)} (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)",
            f"INSERT INTO {quoted(table)} (v) VALUES (REPEAT('é', 300000)), ('x'), (NULL)",
            f"UPDATE {quoted(table)} SET v = 'y' WHERE id = 2",
        )
    interval = Interval(start, source.mark())
    staged = {kind: extracted(source, source.files, open_store(new_root(kind)), interval) for kind in KINDS}
    sums = {kind: [(file.key, file.sha256) for file in found.manifest.files] for kind, found in staged.items()}
    assert len(sums["local"]) >= len(TABLES)
    assert sums["s3"] == sums["local"]
    assert sums["hdfs"] == sums["local"]
    for found in staged.values():
        read = {hashlib.sha256(data).hexdigest() for data in found.files.values()}
        assert read == {file.sha256 for file in found.manifest.files}
        assert found.manifest == staged["local"].manifest
    source.close()
