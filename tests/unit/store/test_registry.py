"""From an address to a store; what is wrong with one is said before anything is asked of a server."""

from __future__ import annotations

import pytest

from loader.config.sections import Staging
from loader.errors import UsageError
from loader.store.address import ROOTS
from loader.store.registry import open_store

REFUSED = [
    ("ftp://x", "not supported"), ("", "not supported"), ("/no/scheme", "not supported"), ("s3a://bucket/x", "not supported"),
    ("s3://", "not an address on S3"), ("s3://bucket/a/../b", "under the store's root"),
    ("s3://bucket/a//b", "under the store's root"), ("s3://bucket/a?endpiont=x", "options of the staging root"),
    ("s3://bucket/a?endpoint=no-scheme", "settings for S3 are invalid"),
    ("hdfs://host:8020", "not a folder on HDFS"), ("hdfs:///folder", "not a folder on HDFS"),
    ("hdfs://host:8020/a#b", "not a folder on HDFS"), ("hdfs://host:8020/a/../b", "under the store's root"),
    ("hdfs://host:8020/a?region=x", "options of the staging root"),
]  # fmt: skip


@pytest.mark.parametrize(("root", "said"), REFUSED)
def test_what_is_no_root_is_refused(root: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        open_store(root)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("root", ROOTS.values())
def test_the_configuration_takes_every_kind_of_store(root: str) -> None:
    assert open_store(Staging(root=root).address).uri("k").endswith("/k")


@pytest.mark.parametrize(
    ("root", "uri"),
    [
        ("file:///a/b/", "file:///a/b/k"),
        ("s3://bucket/a/?region=eu-west-1", "s3a://bucket/a/k"),
        ("s3://bucket", "s3a://bucket/k"),
        ("hdfs://lake/a/b/?user=x", "hdfs://lake/a/b/k"),
    ],
)
def test_the_address_of_an_object_is_what_spark_reads(root: str, uri: str) -> None:
    assert open_store(root).uri("k") == uri
