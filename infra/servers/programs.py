"""The programs of one server version, and how to run them."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import ServerError, tail

Kind = Literal["mysql", "mariadb"]

_LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
_SYSTEM_FOLDERS = (
    "/usr/local/sbin",
    "/usr/sbin",
)  # not on the PATH of everybody, and servers are there
_RECORD = "programs.json"


@dataclass(frozen=True)
class Programs:
    """A server version: `home` is its cache folder, `prefix` holds `bin`, `sbin`, `lib` and `share`."""

    kind: Kind
    version: str
    home: Path
    prefix: Path
    loader: tuple[str, ...]  # runs an unpacked program with its own libc and libraries; empty when installed

    def tool(self, name: str) -> list[str]:
        """The argv prefix that runs a program such as `mysqlbinlog`, under whichever of its names is there.

        Raises:
            ServerError: this version has no such program.
        """
        mariadb_name = "mariadbd" if name == "mysqld" else name.replace("mysql", "mariadb-", 1).rstrip("-")
        names = [mariadb_name, name] if self.kind == "mariadb" else [name]
        candidates = [self.prefix / folder / n for n in names for folder in ("sbin", "bin", "libexec")]
        for path in candidates:
            if path.is_file():
                return [*self.loader, str(path)]
        raise ServerError(f"{self.kind} {self.version} in {self.prefix} has no program {name}")

    def server(self) -> list[str]:
        """The argv prefix of the server itself, told where its own files are."""
        where = {"basedir": self.prefix}
        if self.loader:
            where |= {"lc-messages-dir": self.share, "character-sets-dir": self.share / "charsets"}
            where |= {"plugin-dir": self.prefix / "lib" / "mysql" / "plugin"}
        user = ["--user=root"] if os.geteuid() == 0 else []
        options = [f"--{name}={path}" for name, path in where.items()]
        return [*self.tool("mysqld"), "--no-defaults", *options, *user]

    @property
    def share(self) -> Path:
        """The folder of the error messages, character sets and, for MariaDB, the scripts of its system tables."""
        named = [self.prefix / "share" / name for name in (self.kind, "mysql", "mariadb")]
        return next((path for path in named if (path / "charsets").is_dir()), named[0])

    @property
    def template(self) -> Path:
        """The data folder that new servers start from, a copy each."""
        return self.home / "template"

    def record(self) -> None:
        """Leave a note in the cache folder, from which `recorded` makes this object again."""
        prefix = self.prefix.relative_to(self.home) if self.loader else self.prefix
        note = {"kind": self.kind, "version": self.version, "prefix": str(prefix)}
        (self.home / _RECORD).write_text(json.dumps(note, indent=1))


def recorded(home: Path) -> Programs | None:
    """The programs of a cache folder; None when it holds none."""
    try:
        note = json.loads((home / _RECORD).read_text())
    except FileNotFoundError:
        return None
    prefix = home / note["prefix"]  # an absolute one stays what it is
    loader = private_loader(prefix.parent) if home in prefix.parents else ()
    return Programs(note["kind"], note["version"], home, prefix, loader)


def unpacked(kind: Kind, home: Path, root: Path) -> Programs:
    """The programs below a folder of unpacked packages."""
    found = Programs(kind, "", home, root / "usr", private_loader(root))
    return Programs(kind, _version(found.tool("mysqld"))[1], home, found.prefix, found.loader)


def servers_on_path() -> list[Path]:
    """The server programs on PATH, links resolved."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_FOLDERS])
    found = [shutil.which(name, path=path) for name in ("mysqld", "mariadbd")]
    return list(dict.fromkeys(Path(program).resolve() for program in found if program))


def installed(program: Path, home: Path) -> Programs:
    """The programs beside an installed server.

    Raises:
        ServerError: it does not run.
    """
    kind, version = _version([str(program)])
    return Programs(kind, version, home, program.parent.parent, ())


def private_loader(root: Path) -> tuple[str, ...]:
    """The argv prefix that runs a program of an unpacked root by that root's own dynamic loader.

    Raises:
        ServerError: the processor is none that the packages are known for, or libc is not in the folder.
    """
    machine = platform.machine()
    folders = [root / lib / f"{machine}-linux-gnu" for lib in ("lib", "usr/lib")]
    loaders = [folder / _LOADERS.get(machine, "") for folder in folders]
    loader = next((path for path in loaders if path.is_file()), None)
    if loader is None:
        raise ServerError(f"no dynamic loader for the processor {machine!r} in {root}")
    libraries = [*folders, root / "usr/lib/mysql/private"]
    return str(loader), "--library-path", os.pathsep.join(map(str, libraries))


def _version(server: list[str]) -> tuple[Kind, str]:
    done = subprocess.run([*server, "--no-defaults", "--version"], check=False, capture_output=True, text=True)
    match = re.search(r"Ver (\d+\.\d+\.\d+)", done.stdout)
    if done.returncode or not match:
        raise ServerError(f"`{server[-1]} --version` failed:\n{tail(done.stdout + done.stderr)}")
    return ("mariadb" if "MariaDB" in done.stdout else "mysql"), match[1]
