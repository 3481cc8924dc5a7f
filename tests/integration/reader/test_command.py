"""`loader inspect` on real servers: files and network stage the same bytes, and the listing has every row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loader.cli.app import app
from tests.integration.binlog.source import Source

pytestmark = pytest.mark.integration


def run(*argv: str) -> str:
    done = CliRunner().invoke(app, ["inspect", *argv])
    assert done.exit_code == 0, f"{done.exception!r} {done.output}"
    return done.stdout


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.csv")}


def test_files_and_network_stage_the_same_bytes(source: Source, tmp_path: Path) -> None:
    source.run(
        "DROP TABLE IF EXISTS c", "CREATE TABLE c (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)", "FLUSH BINARY LOGS"
    )
    start = source.mark()
    for _ in range(3):
        source.run(
            "INSERT INTO c (v) VALUES (REPEAT('x', 300000)), (REPEAT('y', 300000)), (NULL)", "UPDATE c SET v = 'z'"
        )
    source.run("FLUSH BINARY LOGS", "DELETE FROM c WHERE id % 2 = 0")
    stop = source.mark()
    address = f"mysql://{source.address.user}@{source.address.host}:{source.address.port}/"
    uris = {"files": f"file://{source.server.log_dir}", "network": address}
    common = ["--from", str(start), "--to", str(stop), "--table", f"{source.schema}.*"]
    for name, uri in uris.items():
        run(uri, *common, "--format", "csv", "--output", str(tmp_path / name), "--threads", "2", "--part-mib", "1")
    staged = files_of(tmp_path / "files")
    assert files_of(tmp_path / "network") == staged
    lines = [line[:1] for text in staged.values() for line in text.splitlines()]
    assert len({name.rpartition("part-")[2][:6] for name in staged}) == 2
    counts = {op: lines.count(op.encode()) for op in "IUD"}
    stats = json.loads(run(address, *common, "--stats", "--format", "json"))
    assert [(t["inserts"], t["updates"], t["deletes"]) for t in stats["tables"]] == [tuple(counts.values())]
    rows = [
        change["op"]
        for line in run(address, *common, "--format", "json").splitlines()
        for change in json.loads(line).get("rows", [])
    ]
    assert {op: rows.count(op) for op in "IUD"} == counts
    text = run(uris["files"], *common).splitlines()
    assert sum(line.startswith(" - ROW#") for line in text) == len(lines)
