"""What is HDFS's own: its addresses, its users, and files that are visible while they are written."""

from __future__ import annotations

import uuid

import pytest
from hdfs import InsecureClient

from infra.hdfs import HdfsServer
from infra.servers.process import free_port
from loader.errors import StoreUnavailable, UsageError
from loader.store.hdfs import HdfsRemote
from loader.store.registry import open_store
from loader.store.remote import RemoteStore
from tests.contract.conftest import hdfs_user

pytestmark = pytest.mark.integration


@pytest.fixture
def folder() -> str:
    return f"/{uuid.uuid4().hex}"


@pytest.fixture
def root(hdfs_server: HdfsServer, folder: str) -> str:
    return f"{hdfs_server.address}{folder}?webhdfs={hdfs_server.web}&user={hdfs_user()}"


def test_nothing_unfinished_is_left_behind_or_listed(hdfs_server: HdfsServer, root: str, folder: str) -> None:
    client = InsecureClient(hdfs_server.web, user=hdfs_user())
    store = open_store(root)
    assert store.create("a/one", b"x") is True
    assert store.create("a/one", b"y") is False
    for _ in range(2):
        with store.writing("a/two") as sink:
            sink.write(b"z")
    with pytest.raises(RuntimeError), store.writing("a/three") as sink:
        sink.write(b"half")
        raise RuntimeError
    assert sorted(client.list(f"{folder}/a")) == ["one", "two"]
    client.write(f"{folder}/a/.unfinished-of-a-killed-process", data=b"half")
    assert [info.key for info in store.list("a/")] == ["a/one", "a/two"]


def test_a_folder_in_the_place_of_an_object_is_an_error(root: str, folder: str) -> None:
    store = RemoteStore(HdfsRemote(root), 1)
    assert store.create("a/b/one", b"x") is True
    for key in ("a/b", "a/b/one/two"):
        with pytest.raises(StoreUnavailable):
            store.create(key, b"y")
    assert [info.key for info in store.list("a/")] == ["a/b/one"]


def test_a_user_who_may_not_write_is_told_so(root: str) -> None:
    store = open_store(root)
    assert store.create("a/one", b"x") is True
    other = open_store(root.replace(f"user={hdfs_user()}", "user=somebody"))
    for act in (lambda: other.create("a/two", b"y"), lambda: other.delete("a/one")):
        with pytest.raises(UsageError, match="denies access to the loader") as caught:
            act()
        assert "staging.hdfs.user" in caught.value.hint


def test_a_name_node_that_is_not_there(folder: str) -> None:
    root = f"hdfs://127.0.0.1:8020{folder}?webhdfs=http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailable, match="HDFS cannot write or read a file") as caught:
        RemoteStore(HdfsRemote(root), 2).create("a/one", b"x")
    assert "staging.hdfs.webhdfs" in caught.value.hint


def test_of_two_name_nodes_the_one_that_answers_is_asked(hdfs_server: HdfsServer, root: str) -> None:
    store = open_store(root.replace(hdfs_server.web, f"http://127.0.0.1:{free_port()};{hdfs_server.web}"))
    assert store.create("a/one", b"x") is True
    assert store.get("a/one") == b"x"
