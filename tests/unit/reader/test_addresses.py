"""Addresses of logs: files, folders, index files, option files and servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import LoaderError, UnsupportedError, UsageError
from loader.reader.files.log_files import FolderFiles, IndexedFiles, LogFiles, OneFile
from loader.reader.locations.mycnf import log_of, read_options
from loader.reader.locations.server import ServerFiles
from loader.reader.locations.uri import resolve
from loader.reader.log import open_log
from loader.transport.server.address import ServerAddress
from tests.unit.reader.logs import busy, read, written
from tests.unit.transport.encrypting import mysql_encrypted

LOG = bytes(busy(1).data)


def listed(files: LogFiles) -> list[str]:
    return [file.name for file in files.listed()]


def test_a_file_a_folder_and_an_index(tmp_path: Path) -> None:
    paths = written(tmp_path, [LOG] * 3)
    for address, kind, names in [
        (f"file://{paths[1]}", OneFile, ["binlog.000002"]),
        (str(paths[1]), OneFile, ["binlog.000002"]),
        (f"file://{tmp_path}", FolderFiles, ["binlog.000001", "binlog.000002", "binlog.000003"]),
    ]:
        found = resolve(address)
        assert type(found) is kind
        assert listed(found) == names
    (tmp_path / "binlog.index").write_text(f"./binlog.000002\n{paths[2]}\n")
    for address in (str(tmp_path), f"file://{tmp_path}/binlog.index"):
        found = resolve(address)
        assert isinstance(found, IndexedFiles)
        assert listed(found) == ["binlog.000002", "binlog.000003"]


def test_a_copy_of_a_folder_whose_index_has_the_server_s_paths(tmp_path: Path) -> None:
    written(tmp_path, [LOG] * 2)
    (tmp_path / "binlog.index").write_text("/var/lib/mysql/binlog.000001\n/var/lib/mysql/binlog.000002\n")
    assert listed(resolve(str(tmp_path))) == ["binlog.000001", "binlog.000002"]
    assert read(tmp_path)


def test_relay_logs_are_not_the_log(tmp_path: Path) -> None:
    written(tmp_path, [LOG], index=True)
    (tmp_path / "host-relay-bin.index").write_text("./host-relay-bin.000001\n")
    assert listed(resolve(str(tmp_path))) == ["binlog.000001"]
    (tmp_path / "other.index").write_text("")
    with pytest.raises(UsageError, match="several index files"):
        resolve(str(tmp_path))


def test_folders_without_a_log_or_with_several(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no binary log"):
        resolve(str(tmp_path)).listed()
    written(tmp_path, [LOG])
    (tmp_path / "other.000001").write_bytes(LOG)
    with pytest.raises(UsageError, match="several logs") as raised:
        resolve(str(tmp_path)).listed()
    assert raised.value.why == "found binlog, other"


def test_numbers_beyond_six_digits_are_ordered_as_numbers(tmp_path: Path) -> None:
    for number in (999_999, 1_000_000, 1_000_001):
        (tmp_path / f"binlog.{number:06d}").write_bytes(LOG)
    assert [file.lognum for file in resolve(str(tmp_path)).listed()] == [999_999, 1_000_000, 1_000_001]


@pytest.mark.parametrize(
    ("uri", "what"),
    [
        ("/nowhere/at/all", "no such file"),
        ("ftp://host/log", "ftp:// is not an address"),
        ("s3:///log", "not an address on S3"),
        ("file://host/path", "not an address"),
        ("mysql://db.example.org/", "the address of the (server|log) is not valid"),
        ("mysql://user@db:x/", "port"),
        ("mysql://user@db/?ssl=1", "the address of the (server|log) is not valid"),
        ("mysql://user@db/?password=plain", "must be a reference"),
        ("http://[::1", "the address of the (server|log) is not valid"),
    ],
)
def test_addresses_that_are_refused(uri: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        resolve(uri)


def test_key_files_behind_a_path(tmp_path: Path) -> None:
    hidden = mysql_encrypted(LOG, bytes(32), "key")
    paths = written(tmp_path, [hidden] * 2)
    (tmp_path / "my.cnf").write_text(f"[mysqld]\ndatadir={tmp_path}\nlog_bin=binlog\n")
    keyring = tmp_path / "keyring.json"
    keyring.write_text(f'{{"elements":[{{"data_id":"key","data":"{bytes(32).hex()}"}}]}}')
    expected = len(read(written(tmp_path / "plain", [LOG])[0]))
    for path in (paths[0], tmp_path, tmp_path / "my.cnf"):
        for address in (f"file://{path}?keyring={keyring}", f"{path}?keyring={keyring}"):
            assert {file.size for file in resolve(address).listed()} == {len(LOG)}
            with open_log(address) as log:
                assert len(list(log)) == expected * len(resolve(address).listed())
    with pytest.raises(UsageError, match="is not valid") as raised:
        resolve(f"file://{tmp_path}?key={keyring}")
    assert raised.value.why == "unknown options: key"
    odd = tmp_path / "what?"
    odd.mkdir()
    assert listed(resolve(str(written(odd, [LOG])[0]))) == ["binlog.000001"]


def test_a_log_inside_innodb_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "binlog-000000.ibb").write_bytes(bytes(100))
    for address in (tmp_path, tmp_path / "binlog-000000.ibb"):
        with pytest.raises(UnsupportedError, match="stores its log in InnoDB"):
            resolve(str(address)).listed()


def address(uri: str) -> ServerAddress:
    found = resolve(uri)
    assert isinstance(found, ServerFiles)
    return found._address


def test_a_server_and_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "from the environment")
    found = address("mysql://loa%40der:se%2Fcret@db.example.org:3307/")
    assert (found.user, found.host, found.port, found.secret()) == ("loa@der", "db.example.org", 3307, "se/cret")
    assert "se/cret" not in f"{found} {found!r} {found.model_dump_json()}"
    for uri in ("mysql://u:env%3ASHOP_PASSWORD@db/", "mariadb://u@db/?password=env:SHOP_PASSWORD&tls_ca=/ca.pem"):
        assert address(uri).secret() == "from the environment"
    assert address("mariadb://u@db/?tls_ca=/ca.pem").tls_ca == "/ca.pem"
    assert address("mysql://u@db/").secret() == ""
    monkeypatch.delenv("SHOP_PASSWORD")
    with pytest.raises(UsageError, match="SHOP_PASSWORD is not set"):
        address("mysql://u@db/?password=env:SHOP_PASSWORD").secret()


def test_option_files_that_include_others(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "b.cnf").write_text("[mysqld]\nlog-bin=later\n")
    (tmp_path / "conf.d" / "a.cnf").write_text("[mysqld]\nlog_bin=earlier\n[client]\nlog_bin=client\n")
    (tmp_path / "conf.d" / "c.txt").write_text("[mysqld]\nlog_bin=not a cnf\n")
    (tmp_path / "more.cnf").write_text("[mariadb]\ndatadir = \"/data dir\"  # where\nquoted='a#b'\n")
    (tmp_path / "my.cnf").write_text(
        f"# comment\n; another\n[mysqld]\nskip-name-resolve\nport = 3307 # here\nloose-log_bin_index=x\\sy\n"
        f"!include {tmp_path}/more.cnf\n!includedir {tmp_path}/conf.d\n"
    )
    assert read_options(tmp_path / "my.cnf") == {
        "skip_name_resolve": "", "port": "3307", "log_bin_index": "x y", "datadir": "/data dir", "quoted": "a#b",
        "log_bin": "later",
    }  # fmt: skip
    (tmp_path / "loop.cnf").write_text(f"!include {tmp_path}/loop.cnf\n")
    with pytest.raises(UsageError, match="include each other"):
        read_options(tmp_path / "loop.cnf")
    with pytest.raises(UsageError, match="an option file cannot be read"):
        read_options(tmp_path / "none.cnf")


@pytest.mark.parametrize(
    ("options", "folder", "base"),
    [
        ("log_bin = {other}/shop-bin\n", "other", "shop-bin"),
        ("log-bin=shop-bin.log\n", "data", "shop-bin"),
        ("log_bin\n", "data", "binlog"),
        ("", "data", "binlog"),
        ("log_bin={other}/shop-bin\nlog_bin_index={data}/list\n", "other", "shop-bin"),
    ],
)
@pytest.mark.parametrize("index", [True, False])
def test_the_log_of_an_option_file(tmp_path: Path, options: str, folder: str, base: str, index: bool) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir()
    other.mkdir()
    where = tmp_path / folder
    (where / f"{base}.000007").write_bytes(LOG)
    (where / "unrelated.000001").write_bytes(LOG)
    text = options.format(other=other, data=data)
    if index:
        place = data / "list.index" if "list" in text else where / f"{base}.index"
        place.write_text(f"{where}/{base}.000007\n" if folder == "other" else f"./{base}.000007\n")
    (tmp_path / "my.cnf").write_text(f"[mysqld]\ndatadir={data}\n{text}")
    assert listed(log_of(tmp_path / "my.cnf")) == [f"{base}.000007"]
    assert read(tmp_path / "my.cnf")


def test_an_option_file_of_a_server_without_a_log(tmp_path: Path) -> None:
    (tmp_path / "my.cnf").write_text("[mysqld]\nskip-log-bin\n")
    with pytest.raises(LoaderError, match="writes no binary log"):
        resolve(str(tmp_path / "my.cnf"))
