"""Trust stores that Java reads, and what Spark is told of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loader.errors import UsageError
from loader.refusals import refusal
from loader.spark.settings import SparkSettings
from loader.spark.submit import configuration, java_program
from loader.spark.trust_store import trust_store
from tests.support.certificates import make_certificates

pytestmark = pytest.mark.integration


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADER_CACHE", str(tmp_path / "cache"))
    return make_certificates(tmp_path).authority


def aliases(store: Path) -> list[str]:
    """What Java finds in a store to which it has no password, as when it trusts it."""
    program = java_program()
    assert program
    argv = [str(program.resolve().with_name("keytool")), "-J-Duser.language=en", "-list", "-keystore", str(store)]
    done = subprocess.run(argv, input="\n", check=True, capture_output=True, text=True)
    return [line.split(",")[0] for line in done.stdout.splitlines() if ", trustedCertEntry" in line]


def test_a_store_has_the_authorities_of_java_and_of_the_file(authority: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    two = tmp_path / "two.pem"
    two.write_text(f"comment\n{authority.read_text()}\n{make_certificates(tmp_path / 'other').authority.read_text()}")
    alone = aliases(trust_store(two, None))
    assert sorted(alone) == ["loader-0", "loader-1"]
    together = aliases(trust_store(two, java_program()))
    assert len(together) > len(alone)
    assert set(alone) <= set(together)


def test_a_store_is_made_once_for_what_is_in_it(authority: Path) -> None:
    first = trust_store(authority, java_program())
    written = first.stat().st_mtime_ns
    assert trust_store(authority, java_program()) == first
    assert first.stat().st_mtime_ns == written
    authority.write_text(authority.read_text() * 2)
    assert trust_store(authority, java_program()) != first
    assert [path.suffix for path in first.parent.iterdir()] == [".jks", ".jks"]


def test_driver_and_executors_are_told_of_it(authority: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jar").touch()
    store = trust_store(authority, java_program())
    settings = SparkSettings(jars=str(tmp_path), tls_ca=str(authority), conf={"spark.files": "/etc/mine"})
    local = configuration(settings)
    assert local["spark.driver.defaultJavaOptions"] == f"-Djavax.net.ssl.trustStore={store}"
    assert "spark.executor.defaultJavaOptions" not in local
    assert local["spark.files"] == "/etc/mine"
    cluster = configuration(settings.model_copy(update={"master": "spark://host:7077"}))
    assert cluster["spark.driver.defaultJavaOptions"] == f"-Djavax.net.ssl.trustStore={store}"
    assert cluster["spark.executor.defaultJavaOptions"].endswith(f" -Djavax.net.ssl.trustStore={store.name}")
    assert cluster["spark.files"] == f"{store},/etc/mine"
    plain = configuration(SparkSettings(jars=str(tmp_path), master="spark://host:7077"))
    assert not {"spark.driver.defaultJavaOptions", "spark.files"} & plain.keys()
    assert "trustStore" not in plain["spark.executor.defaultJavaOptions"]


@pytest.mark.parametrize("text", [None, "none", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"])
def test_a_file_without_certificates(authority: Path, text: str | None) -> None:
    authority.unlink() if text is None else authority.write_text(text)
    with pytest.raises(UsageError, match="TLS authorities of S3 cannot be read") as caught:
        trust_store(authority, None)
    assert caught.value.where["file"] == str(authority)
    assert "staging.s3.tls_ca" in caught.value.hint


def test_authorities_of_java_that_cannot_be_read(authority: Path, tmp_path: Path) -> None:
    program = java_program()
    assert program
    home = tmp_path / "java"
    (home / "lib" / "security").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "bin" / "java").touch()
    (home / "bin" / "keytool").symlink_to(program.resolve().with_name("keytool"))
    (home / "lib" / "security" / "cacerts").write_text("damaged")
    with pytest.raises(UsageError, match="authorities that Java trusts cannot be read") as caught:
        trust_store(authority, home / "bin" / "java")
    assert "keytool error" in caught.value.why
    assert "keytool -list" in caught.value.hint


def test_a_connection_that_broke_is_no_refusal() -> None:
    assert refusal(ConnectionError("PKIX")) is None
    known = refusal(RuntimeError("task failed: PKIX path building failed\n  at java"))
    assert known
    assert known.what == "Java does not trust the certificate of a server"
    assert known.why == "task failed: PKIX path building failed"
    assert not known.retryable
