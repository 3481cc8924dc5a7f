"""Folders next to a staging root."""

from __future__ import annotations

import pytest

from loader.store.sibling import sibling_folder

S3 = "s3://lake/staging?region=eu-west-1&sse=kms"
HDFS = "hdfs://name:8020/staging?user=etl"


@pytest.mark.parametrize(
    ("root", "location", "folder"),
    [
        ("file:///data/staging", "file:/data/shop/t/data/a.parquet", "file:///data/shop/t/data?shared=True"),
        ("file:///data/staging?shared=True", "/data/100%/a.parquet", "file:///data/100%?shared=True"),
        (S3, "s3a://lake/shop/t/data/a.parquet", "s3://lake/shop/t/data?region=eu-west-1&sse=kms"),
        (f"{S3}#signed=env:KEY", "s3://lake/t/a.parquet", "s3://lake/t?region=eu-west-1&sse=kms"),
        (HDFS, "hdfs://name:8020/shop/a.parquet", "hdfs://name:8020/shop?user=etl"),
    ],
)
def test_a_file_on_the_same_store(root: str, location: str, folder: str) -> None:
    assert sibling_folder(root, location) == folder


@pytest.mark.parametrize(
    ("root", "location"),
    [
        (S3, "s3a://other/t/a.parquet"),
        (S3, "/data/a.parquet"),
        (S3, "s3a://lake/a.parquet"),
        (HDFS, "hdfs://name/shop/a.parquet"),
        (HDFS, "hdfs://standby:8020/shop/a.parquet"),
        ("file:///data/staging", "hdfs://name:8020/shop/a.parquet"),
        ("file:///data/staging", "file:/data/what?/a.parquet"),
    ],
)
def test_a_file_elsewhere(root: str, location: str) -> None:
    assert sibling_folder(root, location) is None
