"""No secret is in the configuration, and none is repeated in an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import UsageError
from tests.unit.config.configuration import GOOD, complaint, loaded


def test_a_password_is_given_by_reference_and_a_secret_in_its_place_is_not_repeated(write: Path) -> None:
    for reference in ("env:NAME", "file:/run/secret", "airflow:shop", ""):
        loaded(write, GOOD.replace("env:SHOP_PASSWORD", reference))
    for bare in ("env", "env:", "file: ", "airflow"):
        text = complaint(write, GOOD.replace("env:SHOP_PASSWORD", bare))
        assert text == "sources.shop.password: write a reference: env:NAME, file:/path or airflow:connection"
    with pytest.raises(UsageError) as caught:
        loaded(write, GOOD.replace("env:SHOP_PASSWORD", "hunter2-hunter2"))
    assert caught.value.why == "sources.shop.password: write a reference: env:NAME, file:/path or airflow:connection"
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in str(caught.value.as_dict())


def test_secrets_of_a_catalog_are_given_by_reference(write: Path) -> None:
    def with_catalog(lines: str) -> str:
        return GOOD.replace("[spark]", f"{lines}\n[spark]", 1)

    good = with_catalog('properties = { "jdbc.user" = "a" }\nsecrets = { "jdbc.password" = "env:CATALOG" }')
    assert loaded(write, good).source("shop").catalog.secrets == {"jdbc.password": "env:CATALOG"}
    for name in (
        "jdbc.Password",
        "token",
        "credential",
        "s3.secret-access-key",
        "fs.s3a.secret.key",
        "adls.sas-token.a",
        "fs.azure.account.key.a",
        "header.X-Api-Key",
    ):
        text = complaint(
            write, with_catalog(f'properties = {{ "{name}" = "hunter2", "token-refresh-enabled" = "true" }}')
        )
        assert text.endswith(f"secrets are not allowed here, write a reference in warehouse.secrets: {name}")
        assert "hunter2" not in text
    text = complaint(write, with_catalog('secrets = { "token" = "hunter2" }'))
    assert text == "warehouse.secrets.token: write a reference: env:NAME, file:/path or airflow:connection"
    twice = 'properties = { "a" = "b" }\nsecrets = { "a" = "env:B" }'
    assert complaint(write, with_catalog(twice)).endswith("set both in properties and in secrets: a")
    for uri in (
        "jdbc:postgresql://db/x?user=a&password=hunter2",
        "jdbc:mysql://loader:hunter2@db:3306/lake",
        "jdbc:mysql://address=(host=db)(user=a)(password=hunter2)/lake",
        "jdbc:oracle:thin:loader/hunter2@//db:1521/lake",
        "https://loader:hunter2@catalog/ws",
        "jdbc:sqlserver://db;user=a;Password=hunter2",
    ):
        with pytest.raises(UsageError, match="uri has a password") as caught:
            loaded(write, with_catalog(f'uri = "{uri}"'))
        assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"
        text = complaint(write, with_catalog(f'properties = {{ "uri" = "{uri}" }}'))
        assert "a password in uri" in text and "hunter2" not in text
    for uri in ("jdbc:postgresql://db:5432/x?user=a", "jdbc:oracle:thin:@//db:1521/lake", "thrift://a@db:9083,thrift://c:9083",
                "https://catalog:8181/v1@2", "jdbc:sqlite:/var/lake:1/x@y.db"):  # fmt: skip
        assert loaded(write, with_catalog(f'uri = "{uri}"')).source("shop").catalog.uri == uri


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net", "spark.sql.catalog.lake.jdbc.password",
        "spark.sql.catalog.lake.token", "spark.sql.catalog.lake.credential", "spark.ssl.keyPassword",
        "spark.authenticate.secret", "spark.hadoop.javax.jdo.option.ConnectionPassword",
        "spark.sql.catalog.lake.s3.secret-access-key", "spark.sql.catalog.lake.s3.access-key-id",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY", "spark.executorEnv.AWS_ACCESS_KEY_ID", "spark.executorEnv.MYSQL_PWD",
        "spark.kubernetes.driverEnv.SHOP_PASSWORD", "spark.yarn.appMasterEnv.SIGNING_KEY",
        "spark.executorEnv.LOADER_SECRET_SHOP_1a2b3c4d", "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.hadoop.fs.azure.account.oauth2.client.secret.me.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.user.password.me.dfs.core.windows.net",
        "spark.sql.catalog.lake.header.X-Api-Key",
    ],
)  # fmt: skip
def test_secrets_in_the_configuration_of_spark_would_be_seen_by_every_user(name: str, write: Path) -> None:
    text = complaint(write, GOOD.replace("[sources.shop]", f'[spark.conf]\n"{name}" = "hunter2"\n[sources.shop]', 1))
    assert text.startswith(f"spark: conf has secrets: {name}; refer")
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "value",
    [
        "-Dx.password=hunter2", "jdbc:mysql://u:hunter2@db/x", "https://hunter2@catalog/", "-Dx.pwd=hunter2",
        "jdbc:postgresql://db/x?sslpassword=hunter2", "https://me.blob.core.windows.net/c?sv=1&sig=hunter2",
        "https://catalog/?access_token=hunter2", "hunter2+/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ],
)  # fmt: skip
def test_secrets_inside_of_values_of_the_configuration_of_spark(value: str, write: Path) -> None:
    text = complaint(write, GOOD.replace("[sources.shop]", f'[spark.conf]\n"spark.x" = "{value}"\n[sources.shop]', 1))
    assert text.startswith("spark: conf has secrets: spark.x; refer")
    assert "hunter2" not in text


@pytest.mark.parametrize(
    "line",
    [
        '"spark.hadoop.fs.s3a.aws.credentials.provider" = "x.Y"', '"spark.authenticate.secret.file" = "/run/secret"',
        '"spark.hadoop.hadoop.security.credential.provider.path" = "jceks://file/x"', '"spark.authenticate" = "true"',
        '"spark.security.credentials.hadoopfs.enabled" = "false"', '"spark.redaction.regex" = "(?i)secret|password"',
        '"spark.driver.extraJavaOptions" = "-Xmx1g -Da=b"', '"spark.kerberos.keytab" = "/etc/x.keytab"',
        '"spark.executorEnv.GOOGLE_APPLICATION_CREDENTIALS" = "/etc/key.json"', '"spark.executorEnv.JAVA_HOME" = "/java"',
        '"spark.executorEnv.AWS_WEB_IDENTITY_TOKEN_FILE" = "/run/token"',
        '"spark.hadoop.fs.azure.account.oauth2.refresh.token.endpoint.me" = "https://login.example.org/x"',
        '"spark.hadoop.fs.s3a.encryption.key" = "arn:aws:kms:eu-west-1:1:key/1a2b3c4d-1a2b-1a2b-1a2b-1a2b3c4d5e6f"',
        '"spark.kubernetes.executor.secretKeyRef.SHOP_PASSWORD" = "shop:password"',
    ],
)  # fmt: skip
def test_places_and_classes_of_secrets_are_none(line: str, write: Path) -> None:
    loaded(write, GOOD.replace("[sources.shop]", f"[spark.conf]\n{line}\n[sources.shop]", 1))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('host = "db.example.org"', 'host = "loader:hunter2@db.example.org"', "sources.shop.host"),
        ('host = "db.example.org"', 'host = "mysql://db.example.org"', "sources.shop.host"),
        ("file:///data/staging", "s3://key:hunter2@bucket/x", "staging.root"),
        ("file:///data/staging", "hdfs://hunter2@name:8020/x", "staging.root"),
        ('"file:///data/staging/"', '"s3://b/x"\ns3 = { endpoint = "https://key:hunter2@s3.local" }', "staging.s3.endpoint"),
        ('"file:///data/staging/"', '"hdfs://n/x"\nhdfs = { webhdfs = "http://hunter2@n:9870" }', "staging.hdfs.webhdfs"),
    ],
)  # fmt: skip
def test_user_information_in_an_address_is_refused(old: str, new: str, key: str, write: Path) -> None:
    assert old in GOOD
    text = complaint(write, GOOD.replace(old, new))
    assert text.startswith(key)
    assert "hunter2" not in text
