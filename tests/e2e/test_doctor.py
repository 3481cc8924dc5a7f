"""The doctor's page, and each error of store, warehouse and machine, caused on real ones."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.hdfs import HdfsServer
from infra.s3server import S3Server
from infra.servers import start_server
from loader.doctor.lake import store_works
from loader.errors import LoaderError
from loader.s3 import open_client
from loader.store.registry import open_store
from tests.contract.faults import HOST, Fault, faulty
from tests.e2e.loaded import Loaded

pytestmark = pytest.mark.e2e


@pytest.fixture
def source(loaded: Loaded) -> Iterator[Loaded]:
    """The loaded shop, with its own configuration again after each test."""
    yield loaded
    loaded.configure()


def configure(loaded: Loaded, old: str, new: str) -> None:
    text = loaded.config.read_text()
    assert old in text
    loaded.config.write_text(text.replace(old, new))


def page(source: Loaded, *arguments: str, code: int, **env: str) -> list[dict[str, Any]]:
    """What is not well."""
    done = source.loader("--json", "doctor", *arguments, **env)
    assert done.returncode == code, (done.stdout, done.stderr)
    return [one for one in json.loads(done.stdout) if one["severity"] != "ok"]


def test_all_is_well(source: Loaded) -> None:
    done = source.loader("doctor")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines[:-1]} == {"ok"}
    names = [line.split()[1] for line in lines[:-1]]
    wanted = (
        "chain server log_bin binlog_format binlog_row_image binlog_row_metadata binlog_checksum expiry gtid identity"
    )
    wanted += " tls clock grants tables keys runway java packages store spark_network spark staging catalog"
    assert names == wanted.split()
    assert lines[-1] == f"0 errors, 0 warnings, {len(names)} checks"
    assert not list((source.home / "staging" / ".doctor").iterdir()), "nothing is left behind"


def test_a_server_and_files_by_their_address_without_a_configuration(source: Loaded, tmp_path: Path) -> None:
    server = f"mysql://root:@{source.server.host}:{source.server.port}/"
    for uri, names in ((server, {"server", "grants", "java"}), (f"file://{source.server.log_dir}", {"log", "java"})):
        done = subprocess.run(
            [sys.executable, "-m", "loader", "doctor", "--source", uri],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode in {0, 4}, (done.stdout, done.stderr)
        assert names <= {line.split()[1] for line in done.stdout.splitlines() if line.startswith(("ok", "warning"))}
    missing = subprocess.run(
        [sys.executable, "-m", "loader", "doctor", "--source", "file:///nowhere"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (missing.returncode, "there is no such file or folder" in missing.stdout) == (1, True)


@pytest.mark.sweep
def test_a_hadoop_catalog_on_s3_and_a_file_in_the_place_of_a_folder(source: Loaded) -> None:
    configure(source, f'path = "{source.home}/warehouse"', 'path = "s3a://lake/warehouse"')
    (found,) = page(source, code=1)
    assert (found["name"], "loses commits" in found["what"]) == ("catalog", True)
    configure(source, "s3a://lake/warehouse", f"{source.config}/warehouse")
    (found,) = page(source, code=1)
    assert (found["name"], "is not a folder" in found["what"]) == ("catalog", True)


def test_no_java_no_jars_no_place_to_stage(source: Loaded, tmp_path: Path) -> None:
    found = page(source, code=1, JAVA_HOME=str(tmp_path))
    assert [(one["name"], one["severity"]) for one in found] == [("java", "error"), ("spark", "error")]
    assert found[0]["what"] == "no Java was found"
    configure(source, f'jars = "{source.jars}"', f'jars = "{tmp_path}"')
    (found_jars,) = page(source, code=1)
    assert found_jars["what"].startswith("the jars folder has no jars")
    configure(source, f"{source.home}/staging", f"{source.config}/staging")
    found = page(source, code=1)
    assert [one["name"] for one in found] == ["store", "spark"]
    assert all("the staging store failed" in one["what"] for one in found)


def test_a_broken_chain(source: Loaded) -> None:
    (generation,) = (source.home / "staging" / "shop").glob("*/generation.json")
    whole = generation.read_bytes()
    generation.write_bytes(whole[:20])
    try:
        found = page(source, code=1)
    finally:
        generation.write_bytes(whole)
    assert [one["name"] for one in found] == ["chain", "runway"]


def test_another_server(source: Loaded, tmp_path: Path) -> None:
    with start_server("mysql", tmp_path / "other") as other:
        here = Loaded(other, tmp_path, source.jars)
        here.execute("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY)")
        here.create_user()
        configure(source, f"port = {source.server.port}", f"port = {other.port}")
        (found,) = page(source, code=4)
        assert (found["name"], found["severity"]) == ("chain", "warning")
        assert "another server" in found["what"]


@pytest.mark.sweep
def test_log_files_that_are_not_whole(source: Loaded, tmp_path: Path) -> None:
    configure(source, 'transport = "network"', 'transport = "file"')
    assert page(source, code=0) == []
    (tmp_path / "log.index").write_text(f"{source.server.log_dir}/binlog.000001\n./binlog.000002\n")
    configure(source, f'log_files = "{source.server.log_dir}"', f'log_files = "{tmp_path}/log.index"')
    assert "log files" in {one["name"] for one in page(source, code=1)}
    configure(source, f"{tmp_path}/log.index", "/nowhere/my.cnf")
    found = page(source, code=1)
    assert [one["name"] for one in found] == ["chain", "runway", "log files"]
    assert all("there is no such file or folder" in one["what"] for one in found)


def test_a_store_that_does_not_create_once(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    bucket = f"doctor-{random.SystemRandom().randrange(10**12)}"
    open_client().create_bucket(Bucket=bucket)
    with faulty(s3_server.port) as network:
        store = open_store(f"s3://{bucket}/s?endpoint=http://{HOST}:{network.port}")
        ignoring = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        network.fail(Fault("^PUT .*If-None-Match", "change", times=2, reply=ignoring))
        with pytest.raises(LoaderError, match="ignores If-None-Match"):
            store_works(store)
        assert store_works(store).severity == "ok"
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(LoaderError, match="denies access to the loader"):
            store_works(open_store(store.root))


def test_a_folder_of_hdfs_that_is_another_users(hdfs_server: HdfsServer) -> None:
    with pytest.raises(LoaderError, match="HDFS denies access to the loader"):
        store_works(open_store(f"{hdfs_server.address}/s?webhdfs={hdfs_server.web}&user=stranger"))
