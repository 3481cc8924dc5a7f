"""The jars are those of the lock, to the byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from loader.errors import DataError, LoaderError, RetryableError, UsageError
from loader.jars.lock import DEFAULT, LOCK, Jar, locked_jars, parts, spark_lines
from loader.jars.resolve import jars_folder, proxy_options, spark_jars
from loader.resources import cache_folder

IVY = """
<ivysettings>
  <settings defaultResolver="folder"/>
  <resolvers>
    <filesystem name="folder"><artifact pattern="{folder}/[artifact]-[revision].[ext]"/></filesystem>
  </resolvers>
</ivysettings>
"""
BYTES = b"not really a jar"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private mirror in a folder, which serves one jar, and an empty cache."""
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(IVY.format(folder=tmp_path))
    (tmp_path / "thing-1.2.jar").write_bytes(BYTES)
    monkeypatch.setenv("LOADER_IVY_SETTINGS", str(settings))
    monkeypatch.setenv("LOADER_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write_lock(folder: Path, line: str) -> Path:
    lock = folder / "jars.lock"
    lock.write_text(f"# comment\n\n{line}\n")
    return lock


def test_the_committed_lock_is_well_formed() -> None:
    assert set(DEFAULT) < set(parts())
    jars = locked_jars()
    names = {jar.file_name for jar in jars}
    assert {"iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "iceberg-spark-runtime-4.0_2.13-1.11.0.jar"} < names
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)


@pytest.mark.integration
def test_a_good_jar_is_fetched_once(mirror: Path) -> None:
    lock = write_lock(mirror, f"org.example:thing:1.2  {hashlib.sha256(BYTES).hexdigest()}")
    folder = jars_folder(lock)
    assert [path.name for path in folder.iterdir()] == ["thing-1.2.jar"]
    (mirror / "thing-1.2.jar").unlink()
    assert jars_folder(lock) == folder


@pytest.mark.integration
def test_an_archive_is_fetched_by_its_classifier(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOADER_IVY_SETTINGS")
    place = mirror / "maven" / "org" / "example" / "thing" / "1.2"
    place.mkdir(parents=True)
    (place / "thing-1.2-bin.tar.gz").write_bytes(BYTES)
    lock = write_lock(mirror, f"org.example:thing:1.2:bin:tar.gz  {hashlib.sha256(BYTES).hexdigest()}")
    folder = jars_folder(lock, mirror=f"file://{mirror}/maven")
    assert [path.name for path in folder.iterdir()] == ["thing-1.2-bin.tar.gz"]


@pytest.mark.integration
def test_another_content_than_locked_is_refused(mirror: Path) -> None:
    lock = write_lock(mirror, f"org.example:thing:1.2  {'0' * 64}")
    with pytest.raises(
        DataError, match=r"differs from the locked one \(file thing-1\.2\.jar\)(.|\n)*the SHA-256 \w{64}, not 000"
    ):
        jars_folder(lock)
    assert not list((cache_folder() / "jars").glob("[!.]*"))


@pytest.mark.integration
def test_a_jar_that_nobody_has(mirror: Path) -> None:
    lock = write_lock(mirror, f"org.example:other:1.2  {'0' * 64}")
    with pytest.raises(RetryableError, match=r"could not be downloaded\n(.|\n)*org\.example#other;1\.2: not found"):
        jars_folder(lock)


def test_a_changed_lock_has_another_folder(mirror: Path) -> None:
    assert LOCK.is_file()
    first = jars_folder(write_lock(mirror, ""))
    assert jars_folder(write_lock(mirror, "# changed")) != first


def test_parts_of_the_lock_are_chosen(mirror: Path) -> None:
    digest = hashlib.sha256(BYTES).hexdigest()
    lock = write_lock(mirror, f"[one]\norg.example:thing:1.2  {digest}\n[two]\norg.example:other:1.2  {digest}")
    assert [jar.name for jar in locked_jars(lock, ["two"])] == ["other"]
    assert [jar.name for jar in locked_jars(lock)] == ["thing", "other"]
    with pytest.raises(UsageError, match="the lock has no jars for three"):
        jars_folder(lock, ["one", "three"])


@pytest.mark.parametrize("spark", ["4.0", "4.1"])
def test_each_line_of_spark_has_the_same_parts(spark: str) -> None:
    assert set(parts(LOCK, spark)) == set(parts())
    iceberg, hadoop = (next(jar for jar in jars if jar.name.startswith(name)) for jars, name in _of_lines(spark))
    assert f"-{spark}_2.13" in iceberg.name
    assert hadoop.version == {"4.0": "3.4.1", "4.1": "3.4.2"}[spark]  # what that pyspark bundles
    assert len(locked_jars(LOCK, DEFAULT, spark)) == len({jar.name for jar in locked_jars(LOCK, DEFAULT, spark)})


def _of_lines(spark: str) -> list[tuple[tuple[Jar, ...], str]]:
    return [(parts(LOCK, spark)["iceberg"], "iceberg-"), (parts(LOCK, spark)["s3"], "hadoop-aws")]


def test_the_jars_are_those_of_the_installed_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark_lines() == ["4.1", "4.0"]
    monkeypatch.setattr("importlib.metadata.version", lambda _: "4.2.1")
    with pytest.raises(UsageError, match=r"does not support Spark 4\.2") as refused:
        spark_jars()
    assert refused.value.why == "the lock has jars for Spark 4.1 and 4.0"


@pytest.mark.integration
def test_a_mirror_is_a_maven_repository_of_any_address(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOADER_IVY_SETTINGS")
    place = mirror / "maven" / "org" / "example" / "thing" / "1.2"
    place.mkdir(parents=True)
    (place / "thing-1.2.jar").write_bytes(BYTES)
    lock = write_lock(mirror, f"org.example:thing:1.2  {hashlib.sha256(BYTES).hexdigest()}")
    folder = jars_folder(lock, mirror=f"file://{mirror}/maven")
    assert [path.name for path in folder.iterdir()] == ["thing-1.2.jar"]


def test_proxies_are_those_of_the_environment() -> None:
    assert proxy_options({}) == []
    assert proxy_options({"https_proxy": "http://proxy:3128", "no_proxy": ".local, 127.0.0.1"}) == [
        *("-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=3128"),
        "-Dhttp.nonProxyHosts=*.local|127.0.0.1",
    ]
    assert proxy_options({"HTTP_PROXY": "proxy.example.org"}) == [
        *("-Dhttp.proxyHost=proxy.example.org", "-Dhttp.proxyPort=80")
    ]


def test_without_java_it_says_so(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(mirror))
    with pytest.raises(LoaderError, match="Java was not found"):
        jars_folder(write_lock(mirror, f"org.example:thing:1.2  {'0' * 64}"))
