"""Delegation tokens of HDFS: who gets one, what they allow, and where they must not appear."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from infra.hdfs import DATA_NODE
from infra.servers.process import HOST, free_port
from loader import secret
from loader.errors import RetryableError, StoreUnavailable, UsageError
from loader.secret import keep_secrets
from loader.spark.hdfs_tokens import hdfs_tokens
from loader.store.hdfs import HdfsRemote
from loader.store.registry import open_store
from tests.contract.conftest import NewRoot
from tests.support.secure_hdfs import SecureHdfs

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "_RESOLVED", {})


@pytest.fixture
def token(secure: SecureHdfs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The token of this process, which has no ticket any more."""
    remote = HdfsRemote(f"{secure.root}?{secure.webhdfs}")
    found = remote.delegation_token()
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "no-ticket"))
    keep_secrets({f"delegation:{remote.web}": found})
    return found


@pytest.fixture
def debug(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


@pytest.mark.sweep
def test_a_token_replaces_the_ticket(secure: SecureHdfs, token: str, debug: pytest.LogCaptureFixture) -> None:
    store = open_store(f"{secure.root}/instead?{secure.webhdfs}&user=hdfs")
    assert store.create("a/one", b"x")
    assert not store.create("a/one", b"y")
    with store.writing("a/two") as target:
        target.write(b"z" * 100_000)
    assert store.get("a/one") == b"x"
    with store.reading("a/two") as file:
        assert len(file.read()) == 100_000
    assert [info.key for info in store.list("a/")] == ["a/one", "a/two"]
    store.remove("a/")
    assert store.folders("a/") == ()
    assert "op=OPEN" in debug.text
    assert token not in debug.text


@pytest.mark.sweep
def test_a_token_is_for_all_name_nodes(secure: SecureHdfs) -> None:
    down = f"http://{HOST}:{free_port()}"
    remote = HdfsRemote(f"{secure.root}/nodes?webhdfs={down};{secure.nodes.server.web}")
    keep_secrets({f"delegation:{remote.web}": remote.delegation_token()})
    HdfsRemote(f"{secure.root}/nodes?webhdfs={remote.web}").put("one", BytesIO(b"x"))


@pytest.mark.sweep
def test_a_driver_hands_over_one_token_for_all_stores_of_a_document(secure: SecureHdfs) -> None:
    root = f"{secure.root}/staging?{secure.webhdfs}"
    found = hdfs_tokens({"staging_root": f"{root}#signed=env:KEY", "one": {"root": root}, "name": root})
    assert list(found) == [f"delegation:{secure.nodes.server.web}"]
    assert hdfs_tokens({"root": root}) == found


@pytest.mark.sweep
def test_a_driver_without_a_ticket(secure: SecureHdfs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "no-ticket"))
    with pytest.raises(UsageError, match="there is no Kerberos ticket for HDFS") as caught:
        hdfs_tokens({"root": f"{secure.root}/ticket?{secure.webhdfs}"})
    assert "spark.network.crypto.enabled" in caught.value.hint


@pytest.mark.sweep
def test_a_token_that_is_not_valid_any_more(secure: SecureHdfs, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("KRB5CCNAME", secure.ticket())
        patch.setattr(secret, "_RESOLVED", {})
        client = HdfsRemote(f"{secure.root}?{secure.webhdfs}")._client
        client._request("PUT", f"{client.url}/webhdfs/v1/", params={"op": "CANCELDELEGATIONTOKEN", "token": token})
    remote = HdfsRemote(f"{secure.root}/invalid?{secure.webhdfs}")
    for refused in (lambda: remote.get("one"), lambda: remote.put("one", BytesIO(b"x"))):
        with pytest.raises(RetryableError, match="HDFS refused the delegation token of a task") as caught:
            refused()
        assert "run again" in caught.value.hint
        assert token not in "".join(traceback.format_exception(caught.value))


@pytest.mark.sweep
def test_errors_do_not_show_the_token(secure: SecureHdfs, token: str) -> None:
    remote = HdfsRemote(f"{secure.root}/shown?{secure.webhdfs}")
    remote.put("one", BytesIO(b"x"))
    secure.nodes.stop(DATA_NODE)
    try:
        with pytest.raises(StoreUnavailable) as caught:
            remote.put("two", BytesIO(b"x"))
    finally:
        secure.nodes.start()
    assert "delegation=..." in caught.value.why
    assert token not in "".join(traceback.format_exception(caught.value))


def test_hdfs_without_kerberos_gives_no_token(new_root: NewRoot) -> None:
    assert hdfs_tokens({"staging_root": new_root("hdfs")}) == {}
    assert hdfs_tokens({"staging_root": new_root("local"), "root": ""}) == {}
