"""Staging and warehouse on an HDFS with Kerberos: with a ticket, with a keytab, and without either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.catalogs.hive import Secured, run_hive
from infra.kerberos import REALM
from infra.postgres import run_postgres
from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.loaded import Loaded, assert_loaded_and_followed
from tests.support.secure_hdfs import SecureHdfs, secure_hdfs

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.sweep,
]

TABLES = ("shop.orders", "shop.customers")


@dataclass
class Shop:
    """A source with nothing loaded, whose staging and warehouse are to be in a folder of the file system."""

    source: Loaded
    hdfs: SecureHdfs

    def configure(self, folder: str, master: str = "local[2]", conf: str = "", catalog: str = "") -> None:
        self.source.execute("DROP DATABASE IF EXISTS shop")
        create_shop(self.source.address, 500)
        root = f"{self.hdfs.root}/{folder}"
        web = self.hdfs.nodes.server.web
        staging = f'root = "{root}/staging"\nhdfs = {{ webhdfs = "{web}" }}'
        self.source.configure(staging=staging, warehouse=f'path = "{root}/warehouse"{catalog}')
        text = self.source.config.read_text().replace('master = "local[2]"', f'master = "{master}"')
        text = text.replace('"shop.*"', ", ".join(f'"{table}"' for table in TABLES))
        krb5 = self.hdfs.realm.java_option
        text = text.replace("-XX:TieredStopAtLevel=1", f"-XX:TieredStopAtLevel=1 {krb5}")
        executors = f', "spark.executor.extraJavaOptions" = "{krb5}"{conf} }}'
        self.source.config.write_text(text.replace('" }\n[sources', f'"{executors}\n[sources'))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, jars: str) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("kerberos")
    (folder / "hdfs").mkdir()
    with secure_hdfs(folder / "hdfs") as hdfs, start_server("mysql", folder / "server") as server:
        source = Loaded(server, folder / "loader", jars, {"HADOOP_CONF_DIR": str(hdfs.hadoop_conf)})
        source.create_user()
        yield Shop(source, hdfs)


def test_with_a_ticket(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.configure("ticket")
    monkeypatch.setenv("KRB5CCNAME", shop.hdfs.ticket())
    findings = {one["name"]: one["severity"] for one in shop.source.json("doctor")}
    assert (findings["store"], findings["staging"], findings["catalog"]) == ("ok", "ok", "ok"), findings
    assert_loaded_and_followed(shop.source, TABLES)
    shop.source.execute("UPDATE shop.customers SET name = 'another'")
    done = shop.source.loader("--verbose", "run")
    assert done.returncode == 0, done.stderr
    assert "delegation=" not in done.stdout + done.stderr


def test_with_a_key_table(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    keytab = str(shop.hdfs.keytab)
    shop.configure("keytab", conf=f', "spark.kerberos.keytab" = "{keytab}", "spark.kerberos.principal" = "loader"')
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", keytab)
    monkeypatch.setenv("KRB5CCNAME", str(shop.source.home / "made-by-the-key-table"))
    assert_loaded_and_followed(shop.source, TABLES)


def test_a_hive_metastore_with_kerberos(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secured = Secured(shop.hdfs.realm, shop.hdfs.nodes.server)
    with run_postgres() as postgres, run_hive(tmp_path, postgres.uri, secured=secured) as metastore:
        monkeypatch.setenv("KRB5CCNAME", shop.hdfs.ticket())
        catalog = f'\ntype = "hive"\nuri = "{metastore.uri}"'
        shop.configure("hive", catalog=catalog)
        findings = {one["name"]: one["severity"] for one in shop.source.json("doctor", code=1)}
        assert findings["catalog"] == "error", findings
        prefix = "spark.hadoop.hive.metastore"
        conf = f', "{prefix}.sasl.enabled" = "true", "{prefix}.kerberos.principal" = "hive/_HOST@{REALM}"'
        shop.configure("hive", conf=conf, catalog=catalog)
        findings = {one["name"]: one["severity"] for one in shop.source.json("doctor")}
        assert (findings["catalog"], findings["hive_columns"]) == ("ok", "ok"), findings
        assert_loaded_and_followed(shop.source, TABLES)


def test_executors_that_spark_gives_no_tokens(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.configure("cluster", "local-cluster[2,1,1024]")
    monkeypatch.setenv("KRB5CCNAME", shop.hdfs.ticket())
    found = {one["name"]: one for one in shop.source.json("doctor", code=1)}
    assert found["store"]["severity"] == "ok"
    assert found["staging"]["what"].startswith("Java has no valid Kerberos ticket for HDFS"), found["staging"]
    assert "YARN and Kubernetes only" in found["staging"]["cure"]


def test_without_a_ticket_and_without_the_configuration_of_hadoop(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.configure("none")
    error = shop.source.json("initial-load", code=2)
    assert error["what"] == "there is no Kerberos ticket for HDFS"
    assert "kinit" in error["hint"]
    assert not error["retryable"]

    monkeypatch.setenv("KRB5CCNAME", shop.hdfs.ticket())
    monkeypatch.setitem(shop.source.env, "HADOOP_CONF_DIR", str(shop.source.home))
    found = {one["name"]: one for one in shop.source.json("doctor", code=1)}
    assert found["store"]["severity"] == "ok"
    assert found["staging"]["what"].startswith("Hadoop's client does not use Kerberos"), found["staging"]
    assert "HADOOP_CONF_DIR" in found["staging"]["cure"]
