"""The lock of the jars: coordinates and SHA-256 of the jars of each part, including transitive dependencies."""

from __future__ import annotations

from collections.abc import Collection
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


def parts(lock: Path = LOCK) -> dict[str, tuple[Jar, ...]]:
    """Return the jars of a lock by part. A lock without parts has one part without a name."""
    found: dict[str, list[Jar]] = {}
    part = ""
    for line in lock.read_text(encoding="utf-8").splitlines():
        entry = line.split("#")[0].split()
        if len(entry) == 1:
            part = entry[0].strip("[]")
        elif entry:
            found.setdefault(part, []).append(_jar(*entry))
    return {name: tuple(jars) for name, jars in found.items()}


def locked_jars(lock: Path = LOCK, chosen: Collection[str] = ()) -> list[Jar]:
    """Return the jars of some parts of a lock, or of all.

    Raises:
        UsageError: the lock has no such part.
    """
    known = parts(lock)
    if unknown := sorted(set(chosen) - set(known)):
        raise UsageError(
            f"the lock has no jars for {', '.join(unknown)}",
            hint=f"there are jars for {', '.join(known)}; for another database, put its driver into the folder of jars",
        )
    return [jar for name, jars in known.items() if not chosen or name in chosen for jar in jars]


def _jar(coordinate: str, sha256: str) -> Jar:
    organisation, name, version, *other = coordinate.split(":")  # other: the classifier and the extension
    return Jar(organisation, name, version, sha256, *other)
