"""Log files that the server has purged are read from an archive, if that has them whole and from the same server."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from infra.servers import Server
from loader import pipeline
from loader.doctor.page import continues
from loader.doctor.server import runway
from loader.errors import BinlogFormatError, DataError, GapError, LoaderError
from loader.extract.extraction import extract
from loader.extract.spec import TransportSettings
from loader.pipeline import chain_of, extract_job, plan_interval, source_runway
from loader.source.continuity import LogPurged, LogReplaced
from loader.spark.workers import Threads
from tests.integration.pipeline.conftest import settings_of
from tests.integration.pipeline.shops import Shop, StartServer, purge, reset, shop, sizes
from tests.support.replicas import address_of, run

pytestmark = pytest.mark.integration

__all__ = ["shop"]  # a fixture


@pytest.fixture
def archived(shop: Shop, tmp_path: Path) -> tuple[Shop, Path]:
    """Two transactions that were not read in each of three files, which are in the archive and purged on the server."""
    folder = tmp_path / "archive"
    folder.mkdir()
    for number in (10, 20, 30):
        shop.insert(number, number + 1)
        run(shop.server, "FLUSH BINARY LOGS")
    files = list(sizes(shop.server))
    for file in files[:-1]:
        shutil.copy(shop.server.log_dir / file, folder / file)
    purge(shop.server, files[-1])
    shop.insert(40)
    transport = shop.settings.transport.model_copy(update={"archive": str(folder)})
    return Shop(shop.server, shop.settings.model_copy(update={"transport": transport})), folder


def rows(shop: Shop) -> int:
    return sum(file.rows for file in shop.delta().files)


def refused(shop: Shop, kind: type[LoaderError], says: str) -> None:
    for _ in range(2):
        with pytest.raises(kind, match=says):
            shop.delta()
    chain = chain_of(shop.settings)
    assert all(chain.manifest("0001", plan.start_seqno) is None for plan in chain.unfinished("0001"))


def test_an_archive_heals_a_purge(archived: tuple[Shop, Path]) -> None:
    shop, _ = archived
    assert continues(shop.settings).severity == "ok"
    assert "read from log_archive" in runway(source_runway(shop.settings), 6, archived=True).what
    assert rows(shop) == 7
    shop.insert(50)
    assert rows(shop) == 1


def test_the_archive_gives_the_same_bytes(shop: Shop, tmp_path: Path) -> None:
    """An interval that was planned before the purge, extracted from the server and again after it."""
    folder = tmp_path / "archive"
    folder.mkdir()
    shop.insert(3, 4)
    run(shop.server, "FLUSH BINARY LOGS")
    shop.insert(5)
    chosen = plan_interval(shop.settings)
    assert chosen is not None
    first = shop.extract(chosen)
    files = list(sizes(shop.server))
    for file in files[:-1]:
        shutil.copy(shop.server.log_dir / file, folder / file)
    purge(shop.server, files[-1])
    shutil.copytree(tmp_path / "staging", tmp_path / "second")
    (tmp_path / "second" / chain_of(shop.settings).folder("0001", chosen.start_seqno) / "manifest.json").unlink()
    transport = shop.settings.transport.model_copy(update={"archive": str(folder)})
    there = shop.settings.model_copy(update={"transport": transport, "staging_root": f"file://{tmp_path}/second"})
    extract(Threads(2), cast("Any", extract_job(there, chosen.start_seqno).spec))
    second = chain_of(there).manifest("0001", chosen.start_seqno)
    assert second is not None
    assert [file.sha256 for file in second.files] == [file.sha256 for file in first.files]
    assert (second.gtids, second.mark, second.balance) == (first.gtids, first.mark, first.balance)


def test_a_file_that_the_archive_lacks(archived: tuple[Shop, Path]) -> None:
    shop, folder = archived
    file = sorted(folder.iterdir())[1]
    file.unlink()
    with pytest.raises(GapError) as caught:
        plan_interval(shop.settings)
    assert caught.value.where["file"] == file.name
    refused(shop, GapError, "a log file that is still needed is gone")


def test_a_copy_that_is_not_whole(archived: tuple[Shop, Path]) -> None:
    """Cut at the end of a transaction, as a copy of a file in use is."""
    shop, folder = archived
    for file in sorted(folder.iterdir())[:3]:
        whole = file.read_bytes()
        for end in (len(whole) - 1, whole.rindex(b"binlog.0000") - 27):
            file.write_bytes(whole[:end])
            refused(shop, BinlogFormatError, "the copy of a log file is truncated")
        file.write_bytes(whole)
    assert rows(shop) == 7


def of_another_server(file: bytes) -> bytes:
    changed = bytearray(file)
    changed[9:13] = (7).to_bytes(4, "little")
    end = 4 + int.from_bytes(changed[13:17], "little")
    changed[end - 4 : end] = zlib.crc32(changed[4 : end - 4]).to_bytes(4, "little")
    return bytes(changed)


def test_all_tables_can_be_loaded_again_whatever_the_archive_has(archived: tuple[Shop, Path]) -> None:
    shop, folder = archived
    file = sorted(folder.iterdir())[1]
    file.write_bytes(of_another_server(file.read_bytes()))
    refused(shop, BinlogFormatError, "written by another server")
    begun = pipeline.begin_again(shop.settings)
    assert begun.gap.startswith("the log file in the archive was written by another server")
    assert pipeline.begin_again(shop.settings).name == begun.name
    shop.insert(50)
    assert rows(shop) == 1


def test_a_file_of_another_server(archived: tuple[Shop, Path]) -> None:
    shop, folder = archived
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        file.write_bytes(of_another_server(whole))
        refused(shop, BinlogFormatError, "written by another server")
        file.write_bytes(whole)
    assert rows(shop) == 7


def test_transactions_that_the_server_did_not_log(archived: tuple[Shop, Path]) -> None:
    """A replica of MySQL ran without log_replica_updates: the transactions are in gtid_purged, and in no file."""
    shop, _ = archived
    if shop.server.kind == "mariadb":
        pytest.skip("MariaDB does not keep the GTIDs of what it did not log")
    run(shop.server, "SET GLOBAL gtid_purged = '+01234567-89ab-cdef-0123-456789abcdef:1-5'")
    refused(shop, LogPurged, "the server purged transactions from its log before they were read")


@pytest.mark.parametrize("has_rest", [True, False])
def test_a_folder_of_copies_beside_an_archive(archived: tuple[Shop, Path], tmp_path: Path, has_rest: bool) -> None:
    """The server has purged the file, so nothing but its last event tells whether the copy is whole."""
    shop, archive = archived
    copies = tmp_path / "copies"
    shutil.copytree(archive, copies)
    for file in sizes(shop.server):
        shutil.copy(shop.server.log_dir / file, copies / file)
    transport = TransportSettings(kind="file", path=str(copies), archive=str(archive))
    there = Shop(shop.server, shop.settings.model_copy(update={"transport": transport}))
    if not has_rest:
        _, file, *_ = sorted(archive.iterdir())
        whole = file.read_bytes()
        (copies / file.name).write_bytes(whole[: whole.rindex(b"binlog.0000") - 27])
        with pytest.raises(BinlogFormatError, match="the copy of a log file is truncated"):
            plan_interval(there.settings)
        (copies / file.name).write_bytes(whole)
    assert rows(there) == 7


def test_files_in_the_wrong_order(archived: tuple[Shop, Path]) -> None:
    """Whole files of the right server, but not those of their names."""
    shop, folder = archived
    _, second, third, *_ = sorted(folder.iterdir())
    one, other = second.read_bytes(), third.read_bytes()
    second.write_bytes(other)
    third.write_bytes(one)
    refused(shop, GapError, "log files lack some of its transactions")


def stale_file(server: Server, file: str, folder: Path, *, older: bool) -> None:
    """Copy a file to the folder; `older`: as if the server had started it a day before."""
    data = bytearray((server.log_dir / file).read_bytes())
    if older:
        data[4:8] = (int.from_bytes(data[4:8], "little") - 86_400).to_bytes(4, "little")
        end = 4 + int.from_bytes(data[13:17], "little")
        data[end - 4 : end] = zlib.crc32(data[4 : end - 4]).to_bytes(4, "little")
    (folder / file).write_bytes(data)


@pytest.mark.parametrize("copies", [False, True], ids=["archive", "copies"])
@pytest.mark.parametrize("kind", ["mysql", "mariadb", "mysql without GTIDs"])
def test_a_file_of_before_a_reset(kind: str, copies: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    """The archive keeps its first copy of a name."""
    folder = tmp_path / "archive"
    folder.mkdir()
    plain = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"} if "without" in kind else {}
    server = fresh_server(kind.partition(" ")[0], plain)
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, name VARCHAR(100))")
    shop = Shop(server, settings_of(address_of(server), "shop.*", tmp_path))
    reset(shop)
    shop.insert(901, 902)
    run(server, "FLUSH BINARY LOGS")
    stale = list(sizes(server))[-1]
    shop.insert(*range(903, 913))
    run(server, "FLUSH BINARY LOGS")
    stale_file(server, stale, folder, older="without" in kind)
    reset(shop)
    run(server, "TRUNCATE shop.orders")
    pipeline.begin(shop.settings)
    shop.insert(1, 2, 3)
    shop.delta()
    run(server, "FLUSH BINARY LOGS")
    newest, again = list(sizes(server))
    assert again == stale
    shop.insert(4, 5)
    run(server, "FLUSH BINARY LOGS")
    for file in sizes(server):
        if file == newest or (copies and file != stale):
            shutil.copy(server.log_dir / file, folder / file)
    if copies:
        transport = TransportSettings(kind="file", server=shop.settings.server, path=str(folder))
    else:
        purge(server, list(sizes(server))[-1])
        transport = shop.settings.transport.model_copy(update={"archive": str(folder)})
    there = Shop(server, shop.settings.model_copy(update={"transport": transport}))
    if kind == "mysql":
        refused(there, DataError, "the log repeats transactions that were read before")
    else:
        refused(there, LogReplaced, "the log file does not continue the file before it")
