"""The jars are those of the lock, to the byte."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from infra.jars import LOCK, JarsError, jars_folder, locked_jars
from infra.servers.cache import cache_folder

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
    jars = locked_jars()
    assert "iceberg-spark-runtime-4.1_2.13-1.12.0.jar" in [jar.file_name for jar in jars]
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)


@pytest.mark.integration
def test_a_good_jar_is_fetched_once(mirror: Path) -> None:
    lock = write_lock(mirror, f"org.example:thing:1.2  {hashlib.sha256(BYTES).hexdigest()}")
    folder = jars_folder(lock)
    assert [path.name for path in folder.iterdir()] == ["thing-1.2.jar"]
    (mirror / "thing-1.2.jar").unlink()
    assert jars_folder(lock) == folder


@pytest.mark.integration
def test_another_content_than_locked_is_refused(mirror: Path) -> None:
    lock = write_lock(mirror, f"org.example:thing:1.2  {'0' * 64}")
    with pytest.raises(JarsError, match=r"thing-1\.2\.jar has the sha256 .*, but jars\.lock says 000"):
        jars_folder(lock)
    assert not list((cache_folder() / "jars").glob("[!.]*"))


@pytest.mark.integration
def test_a_jar_that_nobody_has(mirror: Path) -> None:
    lock = write_lock(mirror, f"org.example:other:1.2  {'0' * 64}")
    with pytest.raises(JarsError, match=r"could not be fetched; Ivy says(.|\n)*org\.example#other;1\.2: not found"):
        jars_folder(lock)


def test_a_changed_lock_has_another_folder(mirror: Path) -> None:
    assert LOCK.is_file()
    first = jars_folder(write_lock(mirror, ""))
    assert jars_folder(write_lock(mirror, "# changed")) != first
