"""What is S3's own: its options, its parts, its errors, and servers that do not keep to conditional writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from infra.s3server import S3Server
from infra.servers.process import free_port
from loader.errors import LoaderError, StoreUnavailable, UsageError
from loader.s3 import open_client
from loader.store.base import Store
from loader.store.registry import open_store
from loader.store.remote import RemoteStore
from loader.store.s3 import PART_BYTES, S3Remote
from tests.contract.conftest import new_bucket
from tests.contract.faults import HOST, Fault, FaultyNetwork, faulty

pytestmark = pytest.mark.integration


def error(status: str, code: str) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>said the server</Message></Error>".encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.fixture
def network(s3: S3Server) -> Iterator[FaultyNetwork]:
    with faulty(s3.port) as network:
        yield network


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return new_bucket(s3)


@pytest.fixture
def client(s3: S3Server) -> Any:
    return open_client(endpoint=s3.endpoint)


def opened(bucket: str, network: FaultyNetwork, options: str = "") -> Store:
    return open_store(f"{bucket}/staging?path_style=true&endpoint=http://{HOST}:{network.port}{options}")


def failure(store: Store) -> LoaderError:
    with pytest.raises(LoaderError) as caught:
        store.create("a/one", b"x")
    return caught.value


def test_a_bucket_without_a_prefix(s3: S3Server, bucket: str) -> None:
    store = open_store(f"{bucket}?endpoint={s3.endpoint}&path_style=true")
    assert store.create("a/b/one", b"x") is True
    assert [info.key for info in store.list("a/")] == ["a/b/one"]
    assert store.folders("a/") == ("b",)
    assert store.get("a/b/one") == b"x"


def test_a_server_that_writes_again_what_was_to_be_created_is_refused(bucket: str, network: FaultyNetwork) -> None:
    assert opened(bucket, network).create("a/one", b"x") is True
    other = opened(bucket, network, "&region=eu-west-1")  # of which this process knows nothing yet
    ignoring = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    network.fail(Fault("^PUT .*If-None-Match", "change", times=2, reply=ignoring))
    refused = failure(other)
    assert isinstance(refused, UsageError)
    assert "ignores If-None-Match" in refused.what
    assert not network.pending
    network.fail(Fault("^PUT .*If-None-Match", "answer", reply=error("501 Not Implemented", "NotImplemented")))
    refused = failure(other)
    assert isinstance(refused, UsageError)
    assert "does not support what the loader needs" in refused.what


def test_conditional_writes_are_proved_once_in_a_process(bucket: str, network: FaultyNetwork) -> None:
    for key in ("one", "two", "three"):
        assert opened(bucket, network).create(key, b"x") is True
    puts = [head.split(b" ")[1].rpartition(b"/")[2] for head in network.heads if head.startswith(b"PUT")]
    assert puts == [b".conditional-writes", b".conditional-writes", b"one", b"two", b"three"]


def test_options_go_with_every_request(bucket: str, network: FaultyNetwork) -> None:
    asked = b'HTTP/1.1 200 OK\r\nETag: "0"\r\nContent-Length: 0\r\n\r\n'
    for options, header in (
        ("&sse=s3", b"x-amz-server-side-encryption: AES256"),
        ("&sse=kms&kms_key=alias%2Fstaging", b"x-amz-server-side-encryption-aws-kms-key-id: alias/staging"),
        ("&requester_pays=true", b"x-amz-request-payer: requester"),
    ):
        network.heads.clear()
        network.fail(Fault("^PUT", "answer", reply=asked))
        with opened(bucket, network, options).writing("a/part.csv") as sink:
            sink.write(b"x")
        assert header.lower() in network.heads[0].lower()
        assert f"PUT /{bucket[5:]}/staging/a/part.csv ".encode() in network.heads[0]
    with pytest.raises(UsageError, match="options of the staging root are wrong"):
        opened(bucket, network, "&kms_key=x")


@pytest.mark.parametrize("kind", ["cut", "drop"])
def test_a_long_object_whose_part_fails_leaves_nothing(
    bucket: str, network: FaultyNetwork, client: Any, kind: str
) -> None:
    data = bytes(2 * PART_BYTES + 1000)
    store = opened(bucket, network)
    impatient = RemoteStore(S3Remote(store.root), 1)
    network.fail(Fault("^PUT .*partNumber=2", kind))
    with pytest.raises(StoreUnavailable), impatient.writing("a/part.csv") as sink:
        sink.write(data)
    assert list(store.list("a/")) == []
    assert client.list_multipart_uploads(Bucket=bucket[5:]).get("Uploads", []) == []
    network.fail(Fault("^PUT .*partNumber=3", kind), Fault("^POST .*uploadId=", kind))
    with store.writing("a/part.csv") as sink:
        sink.write(data)
    assert store.get("a/part.csv") == data
    assert client.list_multipart_uploads(Bucket=bucket[5:]).get("Uploads", []) == []


def test_a_create_that_meets_another_under_way_or_one_that_is_gone_is_asked_again(
    bucket: str, network: FaultyNetwork
) -> None:
    store = opened(bucket, network)
    assert store.create("ready", b"") is True
    conflict = error("409 Conflict", "ConditionalRequestConflict")
    gone = error("412 Precondition Failed", "PreconditionFailed")
    for key, reply in (("a/one", conflict), ("a/two", gone)):
        network.fail(Fault("^PUT", "answer", times=2, reply=reply))
        assert store.create(key, b"x") is True
        assert not network.pending


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException"])
def test_credentials_that_have_expired_are_an_error_that_a_retry_can_mend(
    bucket: str, network: FaultyNetwork, code: str
) -> None:
    network.fail(Fault("^PUT", "answer", reply=error("400 Bad Request", code)))
    expired = failure(RemoteStore(S3Remote(opened(bucket, network).root), 1))
    assert isinstance(expired, StoreUnavailable)
    assert "have expired" in expired.what
    assert "renew the credentials" in expired.hint


def test_a_server_that_does_not_let_in_or_is_not_there(
    s3: S3Server, bucket: str, network: FaultyNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = failure(opened("s3://no-bucket-of-that-name", network))
    assert isinstance(missing, UsageError)
    assert "no such bucket" in missing.what
    away = failure(RemoteStore(S3Remote(f"{bucket}?endpoint=http://{HOST}:{free_port()}"), 2))
    assert isinstance(away, StoreUnavailable)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    denied = failure(opened(bucket, network))
    assert isinstance(denied, UsageError)
    assert "denies access to the loader" in denied.what
