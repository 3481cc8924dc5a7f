"""Packages downloaded and unpacked by a private apt: nothing is installed, no root is needed.

apt runs with its own lists, cache and sources, and with a status file that says nothing is installed, so every
library comes along, libc included, and the unpacked folder does not depend on the libraries of the machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from .errors import ServerError, tail

# Only helper scripts that nobody runs here need perl; it would be a fifth of the download.
_STAND_IN = """Package: perl
Status: install ok installed
Architecture: all
Multi-Arch: allowed
Version: 99
Maintainer: nobody <nobody@localhost>
Description: stand-in

"""

# Read after the machine's own configuration, of which proxies and credentials are kept, while hooks that would
# act on the real system and preferences for other suites are not.
_CONFIGURATION = """#clear APT::Update;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::CNF;
APT::Default-Release "";
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Debug::NoLocking "true";
Dir::Cache "{folder}/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
"""

_UNNEEDED = ("doc", "info", "lintian", "locale", "man")  # below usr/share


class PrivateApt:
    """An apt that lives in a folder and knows the given deb822 stanzas only.

    Raises:
        ServerError: apt is missing, or a mirror could not be read.
    """

    def __init__(self, folder: Path, stanzas: list[str]) -> None:
        self._folder = folder
        for name in ("state/lists/partial", "cache/archives/partial", "sources"):
            (folder / name).mkdir(parents=True)
        (folder / "status").write_text(_STAND_IN)
        (folder / "sources" / "private.sources").write_text("\n".join(stanzas))
        (folder / "apt.conf").write_text(_CONFIGURATION.format(folder=folder))
        self._run("apt-get", "update")

    def newest(self, pattern: str) -> str | None:
        """The name of the package that matches the whole pattern, with the highest version in its name."""
        names = self._run("apt-cache", "pkgnames").split()
        matching = [name for name in names if re.fullmatch(pattern, name)]
        return max(matching, key=_version_in, default=None)

    def download(self, packages: list[str]) -> list[Path]:
        """Fetch packages with everything they depend on; returns the files."""
        self._run("apt-get", "install", "--yes", "--download-only", *packages)
        return sorted((self._folder / "cache" / "archives").glob("*.deb"))

    def download_alone(self, package: str) -> list[Path]:
        """Fetch one package and nothing that it depends on; returns its file."""
        folder = self._folder / "alone"
        folder.mkdir()
        self._run("apt-get", "download", package, folder=folder)
        return list(folder.glob("*.deb"))

    def remove(self) -> None:
        """Delete its lists and the downloaded files."""
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str, folder: Path | None = None) -> str:
        return _run([program, "-q", "-c", str(self._folder / "apt.conf"), *arguments], folder)


def unpack(archives: list[Path], root: Path) -> None:
    """Unpack package files over each other into one folder, without running any of their scripts."""
    root.mkdir()
    for archive in archives:
        _run(["dpkg-deb", "--extract", str(archive), str(root)])
    for name in _UNNEEDED:
        shutil.rmtree(root / "usr" / "share" / name, ignore_errors=True)


def _version_in(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _run(command: list[str], folder: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise ServerError(f"{command[0]} is not on this machine; it comes with Debian and Ubuntu") from None
    if done.returncode:
        wanted = " ".join(word for word in command if not word.startswith(("-", "/")))
        raise ServerError(f"`{wanted}` failed:\n{tail(done.stdout + done.stderr)}")
    return done.stdout
