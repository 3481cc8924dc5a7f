"""Bytes that a server keeps though they are no text: an error by default, by the plan's word hex, however often read."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.extract.accounting.accounts import UNREADABLE
from tests.integration.binlog.source import Source

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("transport", ["files", "network"])
def test_the_plan_says_what_becomes_of_them(source: Source, transport: str, tmp_path: Path) -> None:
    source.run(
        "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET hebrew, w VARCHAR(20))"
    )  # fmt: skip
    start = source.mark()
    source.run(
        "INSERT INTO t VALUES (1, _hebrew X'61A1', 'x'), (2, _hebrew X'E0', '\\\\x61a1')", "UPDATE t SET w = 'y'"
    )
    assert source.rows("SELECT HEX(v) FROM t ORDER BY id") == [("61A1",), ("E0",)]
    stop = source.mark()
    used = getattr(source, transport)
    refused = source.staged(tmp_path / "error", start, stop, used)
    (found,) = refused.manifest.left_out
    assert (found.table, found.what) == (f"{source.schema}.t", "a value is not a varchar in hebrew")
    assert found.why == "column v"
    assert int(found.position.rpartition(":")[2]) > start.logpos
    assert 'set undecodable = "hex"' in found.hint
    assert refused.manifest.balance.skipped[UNREADABLE] == 2
    first, again = (source.staged(tmp_path / name, start, stop, used, undecodable="hex") for name in ("one", "two"))
    assert first.files == again.files
    text = b"".join(first.files[key] for key in sorted(first.files)).decode()
    assert [line.split(",", 5)[5] for line in text.splitlines()] == [
        '1,"\\x61a1","x"', '2,"\u05d0","\\\\x61a1"', '1,"\\x61a1","y"', '2,"\u05d0","y"'
    ]  # fmt: skip
