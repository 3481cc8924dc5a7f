"""The lock of the jars: what each part needs, by coordinate and SHA-256. None brings another one along by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from loader.errors import UsageError

LOCK = Path(__file__).with_name("jars.lock")
ALWAYS = "iceberg"
DEFAULT = (ALWAYS, "s3")
"""Parts where nobody chose any."""


@dataclass(frozen=True)
class Jar:
    """One line of the lock."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the folder."""
        return f"{self.name}-{self.version}.jar"


def parts(lock: Path = LOCK) -> dict[str, tuple[Jar, ...]]:
    """The jars of a lock by the part that needs them; a lock without parts is one without a name."""
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
    """The jars of some parts of a lock, or of all.

    Raises:
        UsageError: there is no such part.
    """
    known = parts(lock)
    if unknown := sorted(set(chosen) - set(known)):
        raise UsageError(
            f"no jars are known for {', '.join(unknown)}",
            hint=f"there are jars for {', '.join(known)}; put a driver of your own into the folder of jars",
        )
    return [jar for name, jars in known.items() if not chosen or name in chosen for jar in jars]


def _jar(coordinate: str, sha256: str) -> Jar:
    organisation, name, version = coordinate.split(":")
    return Jar(organisation, name, version, sha256)
