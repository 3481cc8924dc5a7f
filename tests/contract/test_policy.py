"""The example's policy is enough for the store, and nothing in it is too much."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from infra.s3server import S3Server, add_user
from loader.errors import LoaderError, UsageError
from loader.s3 import open_client
from loader.store.base import ObjectNotFound, Store
from loader.store.registry import open_store
from loader.store.s3 import PART_BYTES
from tests.contract.conftest import new_bucket

pytestmark = pytest.mark.integration

POLICY = (Path(__file__).resolve().parents[2] / "infra/examples/s3-policy.json").read_text()
ACTIONS = [action for statement in json.loads(POLICY)["Statement"] for action in statement["Action"]]


@pytest.fixture
def owned(s3: S3Server) -> tuple[S3Server, str, dict[str, str]]:
    """The server, a bucket, and a user of its own who may do nothing yet."""
    name = f"loader{random.SystemRandom().randrange(10**9)}"
    return s3, new_bucket(s3).removeprefix("s3://"), add_user(s3, name)


def allow(server: S3Server, bucket: str, user: str, without: str = "") -> None:
    policy: dict[str, Any] = json.loads(POLICY.replace("LOADER", user).replace("BUCKET", bucket))
    for statement in policy["Statement"]:
        statement["Action"] = [action for action in statement["Action"] if action != without]
    policy["Statement"] = [statement for statement in policy["Statement"] if statement["Action"]]
    open_client(endpoint=server.endpoint).put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def everything(store: Store) -> Iterator[object]:
    """Each thing that a store does, in turn."""
    yield store.create("a/plan.json", b"1")
    yield store.create("a/plan.json", b"2")
    with store.writing("a/b/long.csv") as sink:
        sink.write(bytes(2 * PART_BYTES))
    yield None
    with suppress(ZeroDivisionError), store.writing("a/b/given-up.csv") as sink:
        sink.write(bytes(2 * PART_BYTES))
        raise ZeroDivisionError
    yield None
    yield store.get("a/plan.json")
    with store.reading("a/b/long.csv") as file:
        yield len(file.read())
    yield [info.key for info in store.list("a/")]
    yield store.folders("a/")
    with suppress(ObjectNotFound):
        yield store.get("a/nothing")
    store.delete("a/plan.json")
    store.remove("a/")
    yield [info.key for info in store.list("a/")]


def root(server: S3Server, bucket: str) -> str:
    return f"s3://{bucket}/staging?endpoint={server.endpoint}&path_style=true"


def test_the_policy_is_enough(owned: tuple[S3Server, str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    server, bucket, user = owned
    allow(server, bucket, user["AWS_ACCESS_KEY_ID"])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, user[name])
    keys = ["a/b/long.csv", "a/plan.json"]
    done = list(everything(open_store(root(server, bucket))))
    assert done == [True, False, None, None, b"1", 2 * PART_BYTES, keys, ("b",), []]


@pytest.mark.sweep
@pytest.mark.parametrize("action", [one for one in ACTIONS if one != "s3:AbortMultipartUpload"])
def test_nothing_in_it_is_too_much(
    action: str, owned: tuple[S3Server, str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, bucket, user = owned
    allow(server, bucket, user["AWS_ACCESS_KEY_ID"], without=action)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, user[name])
    with pytest.raises(LoaderError) as caught:
        list(everything(open_store(root(server, bucket))))
    assert isinstance(caught.value, UsageError)
    assert "denies access to the loader" in caught.value.what
