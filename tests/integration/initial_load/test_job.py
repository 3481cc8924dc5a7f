"""The job as Spark runs it: killed and run again, run twice, with tables that fail."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loader.initial_load import job
from loader.initial_load.spec import InitialLoadSpec
from loader.materialise.load.staged_load import load_work
from loader.spark.progress import Progress, parse_progress
from loader.spark.settings import SparkSettings
from loader.spark.submit import command, environment, run
from loader.staging.documents import Manifest
from loader.staging.file_verification import find_faults
from loader.store.registry import open_store
from tests.integration.initial_load.loading import spec_of
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration

JOB = Path(job.__file__)
ROWS = 3000


def fill(source: SourceServer) -> None:
    source.run(
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(50))",
        source.deep_recursion,
        f"INSERT INTO orders WITH RECURSIVE i AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})"
        " SELECT i * 3, CONCAT('note ', i) FROM i",
    )


def files(root: Path, pattern: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.rglob(pattern)}


def kill_between_chunks(spec: InitialLoadSpec, settings: SparkSettings, root: Path, chunks: int) -> dict[str, bytes]:
    """Run the job and kill it, with all its processes, once some chunks are done; the documents of those."""
    (root / "spec.json").write_text(spec.model_dump_json())
    argv = command(JOB, ["--spec", str(root / "spec.json"), "--result", str(root / "result.json")], settings)
    variables = {**os.environ, **environment(settings)}
    with (root / "log").open("wb") as log:
        process = subprocess.Popen(argv, env=variables, stdout=log, stderr=log, start_new_session=True)
    try:
        while len(files(root, "chunks/*.json")) < chunks:
            assert process.poll() is None, (root / "log").read_text()[-3000:]
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return settled(root)


def settled(root: Path) -> dict[str, bytes]:
    """The chunk documents, once the workers that outlive their driver for a moment are done too."""
    while (before := files(root, "chunks/*.json")) != (time.sleep(1), files(root, "chunks/*.json"))[1]:
        pass
    return before


def test_a_killed_load_goes_on_where_it_was(
    mysql: SourceServer, settings: SparkSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(mysql)
    spec = spec_of(mysql, tmp_path, chunk_rows=20)
    slow = settings.model_copy(update={"master": "local[1]"})
    done = kill_between_chunks(spec, slow, tmp_path, 5)
    assert 5 <= len(done) < ROWS // 20
    parts = set(files(tmp_path, "part-*.csv"))
    plans = files(tmp_path, "plan.json")
    mysql.run("UPDATE orders SET note = 'changed'", "DELETE FROM orders WHERE id % 2 = 0")

    with caplog.at_level(logging.DEBUG, "loader.spark.submit"):
        result = run(JOB, spec, settings)
    reported = [found for line in caplog.messages if (found := parse_progress(line.partition("progress: ")[2]))]
    (table,) = result["tables"]
    name = str(mysql.name("orders"))
    first, last = next(one for one in reported if one.unit == "chunks"), reported[-2]
    assert (first.name, first.done, first.total, first.rows) == (name, len(done), ROWS // 20 + 1, len(done) * 20)
    assert (last.name, last.finished, last.rows, last.bytes > first.bytes) == (name, True, table["rows"], True)
    assert reported[-1] == Progress("all tables", 1, 1, "tables", table["rows"])
    assert (table["status"], table["chunks"], result["exit_code"]) == ("staged", ROWS // 20 + 1, 0)
    assert files(tmp_path, "plan.json") == plans
    finished = files(tmp_path, "chunks/*.json")
    assert {name: finished[name] for name in done} == done
    read = {name[5:11] for name in set(files(tmp_path, "part-*.csv")) - parts}
    assert not read & {name[:6] for name in done}

    manifest = manifest_of(tmp_path, result["manifests"][0])
    assert manifest.start == manifest.stop == table["position"]
    assert manifest.exact_at == str(mysql.log_end())
    assert sum(file.rows for file in manifest.files) == table["rows"] < ROWS
    assert list(find_faults(open_store(spec.staging_root), manifest.files)) == []
    assert load_work(manifest).name == mysql.name("orders")

    mysql.run("INSERT INTO orders VALUES (1, 'later')")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    again = run(JOB, spec, settings)
    assert [table["status"] for table in again["tables"]] == ["already"]
    assert again["manifests"] == result["manifests"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def manifest_of(root: Path, key: str) -> Manifest:
    return Manifest.read((root / key).read_bytes(), key)


def test_a_table_that_fails_stops_no_other(mariadb: SourceServer, settings: SparkSettings, tmp_path: Path) -> None:
    fill(mariadb)
    mariadb.run(
        "CREATE TABLE keyless (a INT)",
        "INSERT INTO keyless VALUES (1), (1)",
        "CREATE TABLE empty (a INT PRIMARY KEY)",
        "CREATE TABLE mapped (a INT PRIMARY KEY, y YEAR(2))",
        "CREATE VIEW seen AS SELECT * FROM orders",
    )
    spec = spec_of(mariadb, tmp_path, chunk_rows=1000)
    result = run(JOB, spec, settings)
    found = {table["table"].split(".")[1]: table for table in result["tables"]}
    assert {name: table["status"] for name, table in found.items()} == {
        "empty": "staged", "keyless": "staged", "orders": "staged", "mapped": "failed",
    }  # fmt: skip
    assert found["mapped"]["error"]["error"] == "UnsupportedError"
    assert (result["exit_code"], len(result["manifests"])) == (4, 3)
    assert (found["keyless"]["rows"], found["keyless"]["exact_at"]) == (2, found["keyless"]["position"])
    assert (found["orders"]["rows"], found["empty"]["rows"]) == (ROWS, 0)
    lines = [line for text in files(tmp_path, "part-*.csv").values() for line in text.splitlines()]
    assert len(lines) == ROWS + 2
    assert lines[0].startswith(b"I,")

    mariadb.run("INSERT INTO orders VALUES (1, 'later')")
    anew = spec.model_copy(update={"not_before": str(mariadb.log_end()), "only": (f"{mariadb.schema}.orders",)})
    (first,) = run(JOB, anew, settings)["tables"]
    assert (first["status"], first["rows"]) == ("staged", ROWS + 1)
    assert first["manifest"] != found["orders"]["manifest"]


def test_the_driver_needs_no_codec() -> None:
    program = (
        "import sys, loader.initial_load.job; print([name for name in ('numba', 'airflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
