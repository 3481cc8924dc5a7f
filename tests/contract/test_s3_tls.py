"""S3 over TLS with a private authority: who is trusted, and what is said of who is not."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.s3server import S3Server, run_s3
from infra.servers.process import HOST
from loader.errors import StoreUnavailable, UsageError
from loader.s3 import open_client
from loader.store.registry import open_store
from loader.store.remote import RemoteStore
from loader.store.s3 import S3Remote
from tests.support.certificates import Certificates, make_certificates

pytestmark = pytest.mark.integration


@dataclass
class Encrypted:
    """A server behind TLS with a bucket `lake`, and its certificates."""

    server: S3Server
    files: Certificates

    def root(self, authority: Path | str = "", bucket: str = "lake") -> str:
        return f"s3://{bucket}/staging?endpoint={self.server.endpoint}&tls_ca={authority}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("s3-tls")
    (folder / "buckets" / "lake").mkdir(parents=True)
    files = make_certificates(folder)
    with run_s3(folder / "buckets", files.server) as process:
        yield Encrypted(process.server, files)


@pytest.fixture
def encrypted(running: Encrypted, monkeypatch: pytest.MonkeyPatch) -> Encrypted:
    for name, value in running.server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    return running


@pytest.mark.parametrize("way", ["setting", "variable"])
def test_the_authority_of_the_setting_or_of_the_machine_is_trusted(
    encrypted: Encrypted, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "variable":
        monkeypatch.setenv("AWS_CA_BUNDLE", str(encrypted.files.authority))
    store = open_store(encrypted.root(encrypted.files.authority if way == "setting" else ""))
    assert store.create(f"{way}/one", b"x") is True
    assert store.create(f"{way}/one", b"y") is False
    with store.writing(f"{way}/two") as sink:
        sink.write(b"z" * 100_000)
    assert store.get(f"{way}/two") == b"z" * 100_000
    assert [info.key for info in store.list(f"{way}/")] == [f"{way}/one", f"{way}/two"]


def test_a_create_is_answered_if_the_server_hangs_up_before_it_has_read_the_object(encrypted: Encrypted) -> None:
    """So does this server if it refuses a large object. Over TLS the client then gets no answer."""
    root, long = encrypted.root(encrypted.files.authority), bytes(5_000_000)
    assert open_store(root).create("long", long) is True
    assert RemoteStore(S3Remote(root), 3).create("long", long) is False
    assert open_store(root).get("long") == long


@pytest.mark.parametrize("way", ["other", "public"])
def test_a_server_of_an_unknown_authority_is_named(encrypted: Encrypted, tmp_path: Path, way: str) -> None:
    store = open_store(encrypted.root(make_certificates(tmp_path).authority if way == "other" else ""))
    for act in (lambda: store.create("a/one", b"x"), lambda: store.get("a/one"), lambda: store.list("a/")):
        with pytest.raises(UsageError, match="certificate of the S3 server is not trusted") as caught:
            act()
        assert caught.value.where["host"] == f"{HOST}:{encrypted.server.port}"
        assert caught.value.why == (
            f"certificate verify failed: unable to get local issuer certificate, on {platform.node()}"
        )
        assert "staging.s3.tls_ca (or AWS_CA_BUNDLE)" in caught.value.hint
        assert not caught.value.retryable


def test_a_certificate_of_another_host(encrypted: Encrypted) -> None:
    root = encrypted.root(encrypted.files.authority).replace(HOST, "localhost")
    with pytest.raises(UsageError, match="certificate of the S3 server is not trusted") as caught:
        open_store(root).get("a/one")
    assert caught.value.why == f"hostname 'localhost' doesn't match '{HOST}', on {platform.node()}"


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_of_authorities_that_is_none(encrypted: Encrypted, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    with pytest.raises(UsageError, match="TLS authorities of S3 cannot be read") as caught:
        open_store(encrypted.root(file))
    assert caught.value.where["file"] == str(file)
    assert caught.value.why.endswith(f", on {platform.node()}")


def test_a_server_without_tls_is_no_matter_of_trust(s3_server: S3Server, encrypted: Encrypted) -> None:
    root = f"s3://lake/a?endpoint=https://{HOST}:{s3_server.port}&tls_ca={encrypted.files.authority}"
    with pytest.raises(StoreUnavailable, match="S3 does not answer"):
        RemoteStore(S3Remote(root), 1).get("one")


def test_a_client_without_options_trusts_the_authorities_of_the_machine(
    encrypted: Encrypted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(encrypted.files.authority))
    found = open_client(endpoint=encrypted.server.endpoint).list_buckets()["Buckets"]
    assert [bucket["Name"] for bucket in found] == ["lake"]
