"""Programs of packages of the Debian distribution, unpacked in the cache folder. Nothing is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

from infra.servers.apt import PrivateApt, unpack
from infra.servers.cache import build_once, cache_folder
from infra.servers.programs import private_loader
from infra.servers.sources import distribution, distribution_sources, machine_sources


def program(package: str, name: str) -> list[str]:
    """Return the argv prefix of a program: of the PATH, else of the package of the distribution.

    Raises:
        ServerError: the package cannot be fetched.
    """
    if installed := shutil.which(name):
        return [installed]

    def fetch(folder: Path) -> None:
        sources = distribution_sources(machine_sources(), distribution()[1])
        apt = PrivateApt(folder / "apt", [source.stanza() for source in sources])
        unpack(apt.download([package]), folder / "root")
        apt.remove()

    root = build_once(cache_folder() / package, fetch) / "root"
    found = next(path for folder in ("bin", "sbin") if (path := root / "usr" / folder / name).exists())
    return [*private_loader(root), str(found)]
