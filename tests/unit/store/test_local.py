"""The store on a folder: its address, its errors, what it leaves behind."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loader.errors import StoreUnavailable, UsageError
from loader.store.local import LocalStore
from loader.store.registry import open_store


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_address_of_an_object_is_what_spark_reads(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/")
    assert store.root == f"file://{tmp_path}"
    assert store.uri("a/part-1.csv") == f"file://{tmp_path}/a/part-1.csv"
    store.create("a/part-1.csv", b"x")
    assert files(tmp_path) == ["a/part-1.csv"]


@pytest.mark.parametrize("root", ["file://relative/folder", "relative", "file://"])
def test_a_folder_must_be_absolute(root: str) -> None:
    with pytest.raises(UsageError, match="not a local store"):
        LocalStore(root)


@pytest.mark.parametrize("key", ["../outside", "a/../b", "./a", "a//b", "/etc/passwd", "", "a/", "a/."])
def test_a_key_stays_under_the_root(key: str, tmp_path: Path) -> None:
    store = LocalStore(f"file://{tmp_path}/root")
    for act in (lambda: store.create(key, b"x"), lambda: store.get(key), lambda: store.delete(key)):
        with pytest.raises(UsageError, match="under the store's root"):
            act()
    assert files(tmp_path) == []


def test_nothing_unfinished_is_left_behind_or_listed(tmp_path: Path) -> None:
    store = LocalStore(f"file://{tmp_path}")
    store.create("a/one", b"x")
    store.create("a/one", b"y")
    with pytest.raises(RuntimeError), store.writing("a/two") as sink:
        sink.write(b"half")
        assert len(files(tmp_path)) == 2
        raise RuntimeError
    assert files(tmp_path) == ["a/one"]
    (tmp_path / "a" / ".unfinished-of-a-killed-process").write_bytes(b"half")
    assert [info.key for info in store.list("a/")] == ["a/one"]


@contextmanager
def smallest_files(size: int) -> Iterator[None]:
    """No file of this process can grow beyond that size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_an_error_that_a_retry_can_mend(tmp_path: Path) -> None:
    store = LocalStore(f"file://{tmp_path}")
    with smallest_files(1000):
        with pytest.raises(StoreUnavailable, match="the staging store failed") as caught:
            store.create("a/one", bytes(5000))
        with pytest.raises(StoreUnavailable), store.writing("a/two") as sink:
            sink.write(bytes(100_000))
    assert caught.value.retryable
    assert caught.value.exit_code == 3
    assert caught.value.where == {"key": f"file://{tmp_path}/a/one"}
    assert files(tmp_path) == []
    assert store.create("a/one", bytes(5000))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes no files: /proc")
def test_a_file_system_that_takes_no_files_is_an_error() -> None:
    store = LocalStore("file:///proc")
    with pytest.raises(StoreUnavailable):
        store.create("a/one", b"x")
    with pytest.raises(StoreUnavailable), store.writing("a/one"):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to a read-only folder")
def test_a_read_only_folder_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreUnavailable, match="the staging store failed"):
        LocalStore(f"file://{tmp_path}").create("a/one", b"x")


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    store = LocalStore(f"file://{tmp_path}")
    with pytest.raises(StoreUnavailable):
        store.create("a/one", b"x")
    with pytest.raises(StoreUnavailable), store.writing("a/one"):
        pass


@pytest.mark.parametrize(("options", "modes"), [("", (0o600, 0o700)), ("?shared=True", (0o640, 0o750))])
def test_files_are_for_their_user_unless_the_store_is_shared(
    options: str, modes: tuple[int, int], tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        store = open_store(f"file://{tmp_path}/a/base{options}")
        assert store.create("b/c/one", b"x")
        with store.writing("b/d/two") as sink:
            sink.write(b"y")
    finally:
        os.umask(before)
    staged = ["a/base/b/c/one", "a/base/b/d/two"]
    folders = ["a", "a/base", "a/base/b", "a/base/b/c", "a/base/b/d"]
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in staged} == {modes[0]}
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in folders} == {modes[1]}
    assert open_store(store.root).get("b/d/two") == b"y"
    assert store.uri("b/c/one") == f"file://{tmp_path}/a/base/b/c/one"
