"""Fetch the jars that `jars.lock` names, once, check them, and print the folder they are in.

    python infra/jars.py

The folder is named after the content of the lock, so an older checkout keeps its own. Ivy does the fetching, from the
jar that comes with pyspark and without starting Spark. Behind a private mirror, name an Ivy settings file in
`$LOADER_IVY_SETTINGS`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.servers.cache import build_once, cache_folder

LOCK = Path(__file__).with_name("jars.lock")

_MODULE = """<ivy-module version="2.0">
  <info organisation="loader" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{0}" name="{1}" rev="{2}" conf="default->master(*)" transitive="false"/>'


class JarsError(RuntimeError):
    """The jars could not be had; the text says what failed, why, and what to do."""


@dataclass(frozen=True)
class Jar:
    """One line of the lock."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


def locked_jars(lock: Path = LOCK) -> list[Jar]:
    """The jars that a lock file names."""
    entries = [line.split("#")[0].split() for line in lock.read_text().splitlines()]
    return [_jar(*entry) for entry in entries if entry]


def jars_folder(lock: Path = LOCK) -> Path:
    """The folder with exactly the jars of the lock, fetched if it is not there.

    Raises:
        JarsError: Ivy could not fetch one, or what it fetched is not what the lock says.
    """
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "jars" / digest
    return build_once(folder, lambda partial: _fetch(locked_jars(lock), partial))


def _jar(coordinate: str, sha256: str) -> Jar:
    organisation, name, version = coordinate.split(":")
    return Jar(organisation, name, version, sha256)


def _fetch(jars: list[Jar], folder: Path) -> None:
    work = folder / "ivy"
    work.mkdir()
    module = work / "ivy.xml"
    lines = [_DEPENDENCY.format(jar.organisation, jar.name, jar.version) for jar in jars]
    module.write_text(_MODULE.format(dependencies="\n".join(lines)))
    _run_ivy(module, work / "cache", folder / "[artifact]-[revision].[ext]")
    shutil.rmtree(work)
    for jar in jars:
        _check(folder / jar.file_name, jar)


def _run_ivy(module: Path, cache: Path, pattern: Path) -> None:
    settings = os.environ.get("LOADER_IVY_SETTINGS")
    command = [java(), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-settings", settings] if settings else []
    command += ["-ivy", str(module), "-cache", str(cache)]
    command += ["-types", "jar", "bundle", "-retrieve", str(pattern)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        reason = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise JarsError(
            f"the jars could not be fetched; Ivy says:\n{reason}\n"
            "what to do: behind a private mirror, name its Ivy settings file in LOADER_IVY_SETTINGS"
        )


def _check(path: Path, jar: Jar) -> None:
    if not path.is_file():
        raise JarsError(f"{path.name} was not fetched, though Ivy reported no error")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.sha256:
        raise JarsError(
            f"{path.name} has the sha256 {found}, but {LOCK.name} says {jar.sha256}\n"
            "what to do: find out why the mirror serves another file; change the lock only if that is right"
        )


def java() -> str:
    """The program of `$JAVA_HOME`, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    found = [jar for folder in folders or [] for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not found:
        raise JarsError("pyspark is not installed here; run this with .venv/bin/python after `make setup`")
    return found[0]


if __name__ == "__main__":
    try:
        print(jars_folder())
    except JarsError as error:
        sys.exit(f"error: {error}")
