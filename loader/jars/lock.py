"""The lock of the jars: coordinates and SHA-256 of the jars of each part, including transitive dependencies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from loader.errors import UsageError

LOCK = Path(__file__).with_name("jars.lock")
ALWAYS = "iceberg"
DEFAULT = (ALWAYS, "s3")
"""Parts that are used if none were chosen."""


@dataclass(frozen=True)
class Jar:
    """A line of the lock: a jar, or another artifact of the repository with a classifier, such as an archive."""

    organisation: str
    name: str
    version: str
    sha256: str
    classifier: str = ""
    extension: str = "jar"

    @property
    def file_name(self) -> str:
        """The file name of the jar in the folder."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"


def parts(lock: Path = LOCK, spark: str = "") -> dict[str, tuple[Jar, ...]]:
    """Return the jars of a lock by part. A lock without parts has one part without a name.

    Args:
        lock: the file.
        spark: line of Spark, such as 4.1: sections for other lines are left out. Empty: all sections.
    """
    found: dict[str, list[Jar]] = {}
    for part, line, jar in _entries(lock):
        if not (spark and line) or spark == line:
            found.setdefault(part, []).append(jar)
    return {name: tuple(jars) for name, jars in found.items()}


def spark_lines(lock: Path = LOCK) -> list[str]:
    """Return the lines of Spark that a lock has sections for, the newest first."""
    return sorted({line for _, line, _ in _entries(lock) if line}, reverse=True)


def locked_jars(lock: Path = LOCK, chosen: Collection[str] = (), spark: str = "") -> list[Jar]:
    """Return the jars of some parts of a lock, or of all; for `spark` see `parts`.

    Raises:
        UsageError: the lock has no such part, or has no jars for this Spark.
    """
    lines = spark_lines(lock)
    if spark and lines and spark not in lines:
        raise UsageError(
            f"the loader does not support Spark {spark}",
            why=f"the lock has jars for Spark {' and '.join(lines)}",
            hint="pip install 'binlog-loader[spark]' -c constraints.txt",
        )
    known = parts(lock, spark)
    if unknown := sorted(set(chosen) - set(known)):
        raise UsageError(
            f"the lock has no jars for {', '.join(unknown)}",
            hint=f"there are jars for {', '.join(known)}; for another database, put its driver into the folder of jars",
        )
    return [jar for name, jars in known.items() if not chosen or name in chosen for jar in jars]


def _entries(lock: Path) -> Iterator[tuple[str, str, Jar]]:
    """Yield part, line of Spark (empty: every line) and jar of each line with a jar."""
    part, spark = "", ""
    for line in lock.read_text(encoding="utf-8").splitlines():
        entry = line.split("#")[0].split()
        if entry and entry[0].startswith("["):
            part, _, spark = " ".join(entry).strip("[]").partition(" ")
        elif entry:
            yield part, spark, _jar(*entry)


def _jar(coordinate: str, sha256: str) -> Jar:
    organisation, name, version, *other = coordinate.split(":")  # other: the classifier and the extension
    return Jar(organisation, name, version, sha256, *other)
