"""Logs archived on a real S3 server are read as the files they were."""

from __future__ import annotations

import io
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.servers import Server
from infra.servers.process import free_port
from loader.cli.app import app
from loader.errors import BinlogFormatError, GapError, LoaderError, SourceUnavailable, UsageError
from loader.extract.spec import TransportSettings
from loader.model.position import Interval, Position
from loader.reader.log import open_log
from loader.s3 import S3Address
from loader.transport.base import LogLags
from loader.transport.keys import KeyFiles
from loader.transport.s3 import S3Transport, _Object
from tests.integration.binlog.source import Source, extracted
from tests.unit.reader.logs import busy
from tests.unit.transport.encrypting import mysql_encrypted

pytestmark = pytest.mark.integration


@pytest.fixture
def bucket(s3: Any) -> str:
    name = f"logs-{random.randrange(10**12)}"
    s3.create_bucket(Bucket=name)
    return name


def archived(s3: Any, bucket: str, folder: str, logs: dict[str, bytes]) -> str:
    for name, log in logs.items():
        s3.put_object(Bucket=bucket, Key=f"{folder}/{name}", Body=log)
    return f"s3://{bucket}/{folder}"


def made(count: int = 3) -> dict[str, bytes]:
    return {f"binlog.{number:06d}": bytes(busy(40).data) for number in range(1, count + 1)}


def test_an_archive_stages_what_the_server_s_files_do(
    mysql_server: Server, s3: Any, bucket: str, tmp_path: Path
) -> None:
    source = Source(mysql_server, "archived")
    source.run("FLUSH BINARY LOGS", "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)")
    start = source.mark()
    for size in (10, 300_000, 5_000_000):
        source.run(f"INSERT INTO t (v) VALUES (REPEAT('é', {size})), (REPEAT('x', {size}))", "FLUSH BINARY LOGS")
    source.run("DELETE FROM t")
    stop = source.mark()
    names = [f"{start.basename}.{number:06d}" for number in range(start.lognum, stop.lognum + 1)]
    folder = archived(s3, bucket, "archive/shop", {name: (mysql_server.log_dir / name).read_bytes() for name in names})
    transport = TransportSettings(kind="file", path=folder).open()
    assert isinstance(transport, S3Transport)
    interval = Interval(start, stop)
    assert transport.segments(interval) == source.files.segments(interval)
    files = extracted(source, source.files, tmp_path / "files", interval)
    there = extracted(source, transport, tmp_path / "s3", interval)
    again = extracted(source, transport, tmp_path / "again", interval)
    assert files.files
    assert there.files == files.files == again.files
    assert there.manifest == files.manifest == again.manifest
    source.close()


def test_a_folder_and_a_file_by_address(s3: Any, bucket: str, tmp_path: Path) -> None:
    logs = made()
    folder = archived(s3, bucket, "a/b c", {**logs, "binlog.index": b"x", "notes.txt": b"", "more/binlog.000009": b"x"})
    for name, log in logs.items():
        (tmp_path / name).write_bytes(log)
    with open_log(str(tmp_path)) as local, open_log(folder.replace(" ", "%20")) as there:
        assert list(there) == list(local)
    with open_log(f"{folder}/binlog.000002", start="2:4") as there, open_log(str(tmp_path / "binlog.000002")) as local:
        assert list(there) == list(local)
    done = CliRunner().invoke(app, ["inspect", f"{folder}/", "--format", "csv", "--output", str(tmp_path / "out")])
    assert done.exit_code == 0, f"{done.exception!r} {done.output}"
    assert CliRunner().invoke(
        app, ["inspect", str(tmp_path), "--format", "csv", "--output", str(tmp_path / "files")]
    ).exit_code == 0  # fmt: skip
    there, here = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.csv")} for name in ("out", "files")
    )
    assert there == here
    assert there


def test_an_encrypted_log_in_an_archive(s3: Any, bucket: str, tmp_path: Path) -> None:
    log = bytes(busy(40).data)
    folder = archived(s3, bucket, "hidden", {"binlog.000001": mysql_encrypted(log, bytes(32), "key")})
    keyring = tmp_path / "keyring"
    keyring.write_text(f'{{"elements":[{{"data_id":"key","data":"{bytes(32).hex()}"}}]}}')
    transport = S3Transport(folder, KeyFiles(keyring=str(keyring)))
    assert transport.size("binlog.000001") == len(log)
    with open_log(f"{folder}?keyring={keyring}") as opened:
        assert sum(event.header.size for event in opened) == len(log) - 4
    with pytest.raises(UsageError, match="the log file is encrypted"), open_log(folder) as opened:
        next(iter(opened))


def test_what_is_missing_is_named(s3: Any, bucket: str) -> None:
    logs = made()
    folder = archived(s3, bucket, "gap", {name: log for name, log in logs.items() if name != "binlog.000002"})
    with pytest.raises(GapError, match="between two others") as gap:
        open_log(folder)
    assert gap.value.where["file"] == "binlog.000002"
    transport = S3Transport(folder)
    interval = Interval(Position("binlog", 1, 4), Position("binlog", 3, 4))
    for failing in (lambda: transport.segments(interval), lambda: transport.open("binlog.000002", 4, 100).__enter__()):
        with pytest.raises(GapError, match="still needed is gone") as caught:
            failing()
        assert caught.value.where == {"file": "binlog.000002"}
        assert folder in caught.value.why
    with pytest.raises(UsageError, match="no binary log"):
        open_log(f"s3://{bucket}/nothing")
    with pytest.raises(UsageError, match="no such bucket"):
        open_log("s3://no-bucket-of-that-name/x")
    with pytest.raises(LogLags, match="ends before the interval"):
        transport.segments(Interval(Position("binlog", 1, 4), Position("binlog", 1, 10**9)))


def failure(folder: str) -> LoaderError:
    with pytest.raises(LoaderError) as caught:
        S3Transport(folder).size("binlog.000001")
    return caught.value


def test_a_store_that_does_not_let_in_or_does_not_answer(s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = archived(s3, bucket, "closed", made(1))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    denied = failure(folder)
    assert isinstance(denied, UsageError)
    assert "denies access to the loader" in denied.what
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    silent = failure(folder)
    assert isinstance(silent, SourceUnavailable)
    assert silent.retryable
    assert silent.where["file"] == "binlog.000001"


def test_a_log_that_is_replaced_while_it_is_read_is_noticed(s3: Any, bucket: str) -> None:
    folder = archived(s3, bucket, "moving", {"binlog.000001": b"\xfebin" + bytes(10**6)})
    with (
        pytest.raises(BinlogFormatError, match="changed while it was read"),
        S3Transport(folder).open("binlog.000001", 4, 10**6) as log,
    ):
        assert log.read(10)
        archived(s3, bucket, "moving", {"binlog.000001": b"\xfebin" + bytes(range(100)) * 10**4})
        log.seek(900_000)
        log.read(10)


def test_reading_straight_on_takes_few_requests_and_reading_here_and_there_few_bytes(s3: Any, bucket: str) -> None:
    content = random.Random(3).randbytes(30_000_000)
    address = S3Address.parse(archived(s3, bucket, "large", {"one": content})) / "one"
    ranges: list[int] = []

    def asked(params: dict[str, Any], **_: Any) -> None:
        first, last = params["headers"]["Range"].removeprefix("bytes=").split("-")
        ranges.append(int(last) - int(first) + 1)

    s3.meta.events.register("before-call.s3.GetObject", asked)
    with ThreadPoolExecutor(1) as ahead:
        log = _Object(s3, address, ahead)
        found, block = io.BytesIO(), bytearray(1_000_003)
        while got := log.readinto(memoryview(block)):
            found.write(block[:got])
        assert found.getvalue() == content
        assert len(ranges) <= 8
        assert sum(ranges) == len(content)
        ranges.clear()
        chance = random.Random(5)
        for _ in range(50):
            at = chance.randrange(len(content))
            log.seek(at)
            assert log.read(40) == content[at : at + 40]
        assert sum(ranges) <= 50 * 64 * 1024
    assert log.read(0) == b""
