"""Encrypted logs of real servers: their files, decrypted, are what the servers send, and stage to the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from typer.testing import CliRunner

from infra.servers.process import wait_until
from loader.cli.app import app
from loader.errors import UsageError
from loader.model.position import Interval, Position
from loader.source.continuity import check_log_holds
from loader.transport.base import Transport
from loader.transport.file import FileTransport
from loader.transport.keys import KeyFiles
from loader.transport.server.connection import connected, log_sizes
from tests.integration.binlog.source import Source, extracted
from tests.integration.transport.keyrings import encrypting_mariadb, encrypting_mysql

pytestmark = pytest.mark.integration
COMPRESSED = {"mysql": "SET SESSION binlog_transaction_compression = {}", "mariadb": "SET GLOBAL log_bin_compress = {}"}


@dataclass
class Encrypted:
    """A server that encrypts its log; the places between the transactions of a closed file and of the open one."""

    source: Source
    keys: KeyFiles
    marks: list[Position]

    @property
    def files(self) -> FileTransport:
        return FileTransport(str(self.source.server.log_dir), self.keys)


@pytest.fixture(scope="module", params=["mysql", "mariadb-AES_CBC", "mariadb-AES_CTR"])
def encrypted(request: pytest.FixtureRequest) -> Iterator[Encrypted]:
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(TemporaryDirectory(prefix="loader-encrypted-")))
        _, _, algorithm = request.param.partition("-")
        server, keys = encrypting_mariadb(folder, algorithm) if algorithm else encrypting_mysql(folder)
        cleanup.callback(server.kill)
        source = Source(server, "hidden")
        yield Encrypted(source, keys, work(source))


def work(source: Source) -> list[Position]:
    """Transactions of many sizes in two files, compressed ones among them."""
    source.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)", "FLUSH BINARY LOGS")
    marks = [Position(source.mark().basename, source.mark().lognum, 4), source.mark()]
    for size in (0, 1, 30, 9_000, 3_000_000):
        source.run("BEGIN", *(f"INSERT INTO t (v) VALUES (REPEAT('ab', {size + n}))" for n in range(5)), "COMMIT")
        marks.append(source.mark())
    source.run(COMPRESSED[source.kind].format("ON"), "UPDATE t SET v = CONCAT(v, '!')")
    source.run(COMPRESSED[source.kind].format("OFF"), "FLUSH BINARY LOGS")
    source.run(*(f"INSERT INTO t (v) VALUES (REPEAT('x', {n % 40}))" for n in range(300)), "DELETE FROM t WHERE id < 9")
    end = source.mark()
    assert wait_until(lambda: settled(source, end.file), 30)
    return [*marks, source.mark()]


def settled(source: Source, file: str) -> bool:
    """Whether MariaDB, which notes some time later that no file before is needed, has done so."""
    notes = [row[5] for row in source.rows(f"SHOW BINLOG EVENTS IN '{file}'") if row[2] == "Binlog_checkpoint"]
    return source.kind == "mysql" or file in notes


def log_of(transport: Transport, file: str, size: int) -> bytes:
    with transport.open(file, 4, size) as log:
        log.seek(0)
        found = b""
        while piece := log.read(1 << 20):
            found += piece
    return found


def events(log: bytes) -> list[bytes]:
    found, at = [], 4
    while at < len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        found.append(log[at : at + size])
        at += size
    return found


def comparable(event: bytes) -> bytes:
    """Without the flags and the checksum of the two first events, which the server changes when it sends them."""
    return event[:17] + event[19:-4] if event[4] in {15, 164} else event


def test_the_decrypted_file_is_what_the_server_sends(encrypted: Encrypted) -> None:
    with connected(encrypted.source.address) as connection:
        sizes = log_sizes(connection)
    for file in {mark.file for mark in encrypted.marks}:
        raw = (encrypted.source.server.log_dir / file).read_bytes()
        assert b"ababab" not in raw
        decrypted = log_of(encrypted.files, file, sizes[file])
        assert len(decrypted) == sizes[file]
        sent = log_of(encrypted.source.network, file, sizes[file])
        assert list(map(comparable, events(decrypted))) == list(map(comparable, events(sent)))
        assert b"ababab" in decrypted or file == encrypted.marks[-1].file


def test_positions_are_those_of_the_server(encrypted: Encrypted) -> None:
    """What SHOW BINLOG EVENTS counts; SHOW BINARY LOGS counts MySQL's header with it."""
    for file in {mark.file for mark in encrypted.marks}:
        shown = [(int(row[1]), int(row[4])) for row in encrypted.source.rows(f"SHOW BINLOG EVENTS IN '{file}'")]
        shown = [(at, end) for at, end in shown if at < end]  # not those inside compressed transactions
        found, at = [], 4
        for event in events(log_of(encrypted.files, file, 1 << 40)):
            found.append((at, at + len(event)))
            at += len(event)
        assert found == shown
    end = encrypted.marks[-1]
    with connected(encrypted.source.address) as connection:
        assert log_sizes(connection)[end.file] == len(log_of(encrypted.files, end.file, 1 << 40))
        check_log_holds(connection, end)
    assert encrypted.files.segments(Interval(encrypted.marks[1], end)) == encrypted.source.network.segments(
        Interval(encrypted.marks[1], end)
    )


def test_both_ways_stage_the_same_bytes(encrypted: Encrypted, tmp_path: Path) -> None:
    marks = encrypted.marks
    pairs = [(marks[0], marks[-1]), *pairwise(marks[1:])]
    for number, (start, stop) in enumerate(pairs):
        files, network, again = (
            extracted(encrypted.source, transport, tmp_path / f"{number}{name}", Interval(start, stop))
            for name, transport in (
                ("files", encrypted.files), ("network", encrypted.source.network), ("again", encrypted.files),
            )
        )  # fmt: skip
        assert files.files
        assert network.files == files.files == again.files
        assert network.manifest == files.manifest == again.manifest


def test_the_command_and_a_wrong_key(encrypted: Encrypted, tmp_path: Path) -> None:
    folder = encrypted.source.server.log_dir
    option, path = ("keys", encrypted.keys.keys) if encrypted.keys.keys else ("keyring", encrypted.keys.keyring)
    counted = run(f"file://{folder}?{option}={path}")
    mysql = encrypted.source.address
    assert counted == run(f"mysql://{mysql.user}@{mysql.host}:{mysql.port}/")
    assert counted["tables"]
    with pytest.raises(UsageError, match="the log file is encrypted") as caught:
        log_of(FileTransport(str(folder)), encrypted.marks[0].file, 1000)
    key_id = caught.value.where["key"]
    other = tmp_path / "other"
    text = Path(path).read_text()
    wrong = "00" * 16 if option == "keys" else "00" * 32
    if option == "keys":
        other.write_text(f"1;{wrong}\n")
    else:
        data = json.loads(text)
        for element in data["elements"]:
            element["data"] = wrong
        other.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=f"key {key_id} does not open the log") as caught:
        log_of(FileTransport(str(folder), KeyFiles(**{option: str(other)})), encrypted.marks[0].file, 1000)
    assert caught.value.where == {"file": encrypted.marks[0].file, "key": str(other)}


def run(uri: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["--json", "inspect", uri, "--table", "hidden.*", "--stats"])
    assert done.exit_code == 0, f"{done.exception!r} {done.output}"
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found
