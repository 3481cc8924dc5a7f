"""What Spark is told of a staging root."""

from __future__ import annotations

import pytest

from loader.store.spark_settings import hadoop_user, spark_conf

OF_BUCKET = "spark.hadoop.fs.s3a.bucket.lake."
CHAIN = {"aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"}


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without settings of AWS, but with secrets."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "s3cret-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-key")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"endpoint.region": "us-east-1"}),
        ("?region=eu-west-1&path_style=true", {"endpoint.region": "eu-west-1", "path.style.access": "true"}),
        (
            "?endpoint=http%3A%2F%2Fh%3A9000&region=x",
            {"endpoint.region": "x", "endpoint": "http://h:9000", "path.style.access": "true"},
        ),
        ("?sse=s3", {"endpoint.region": "us-east-1", "encryption.algorithm": "AES256"}),
        (
            "?sse=kms&kms_key=alias%2Fa&requester_pays=True",
            {
                "endpoint.region": "us-east-1",
                "encryption.algorithm": "SSE-KMS",
                "encryption.key": "alias/a",
                "requester.pays.enabled": "true",
            },
        ),
    ],
)
def test_the_options_of_a_bucket_are_those_of_its_root(query: str, expected: dict[str, str]) -> None:
    assert spark_conf(f"s3://lake/staging{query}") == {OF_BUCKET + k: v for k, v in (CHAIN | expected).items()}


def test_what_the_machine_says_of_address_and_region_counts_where_the_root_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://h:9000")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    found = spark_conf("s3://lake/staging")
    assert found[f"{OF_BUCKET}endpoint"] == "http://h:9000"
    assert found[f"{OF_BUCKET}endpoint.region"] == "eu-west-3"
    assert spark_conf("s3://lake/staging?region=x")[f"{OF_BUCKET}endpoint.region"] == "x"


def test_other_roots_need_nothing_but_a_user() -> None:
    assert spark_conf("file:///data") == spark_conf("hdfs://nn:8020/staging?user=etl") == {}
    assert hadoop_user("hdfs://nn:8020/staging?user=etl") == "etl"
    assert hadoop_user("hdfs://nn:8020/staging") == hadoop_user("s3://lake/staging") == ""
