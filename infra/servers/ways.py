"""Ways to get a server, tried in order until one works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .apt import PrivateApt, unpack
from .cache import build_once, cache_folder
from .errors import ServerError
from .programs import Kind, Programs, installed, recorded, servers_on_path, unpacked
from .sources import distribution, distribution_sources, machine_sources
from .template import create_template

_MYSQL = (
    r"mysql-server-core(-\d+\.\d+)?",
    r"mysql-client-core(-\d+\.\d+)?",
    r"mysql-client(-\d+\.\d+)?",
)
_MARIADB = (r"mariadb-server-core(-\d+\.\d+)?", r"mariadb-client(-\d+\.\d+)?")
NEW_MARIADB = "debian-unstable-mariadb"
"""The way to a MariaDB that is years newer than the distribution's."""

_MARIADB_PLUGINS = "mariadb-server"  # it has the plugins of the server, such as the one for encryption keys


@dataclass(frozen=True)
class Way:
    """A way to get a server of a kind; `build` puts its programs into a given folder."""

    kind: Kind
    name: str  # of the cache folder, and in messages
    build: Callable[[Path], Programs]

    @property
    def home(self) -> Path:
        return servers_folder() / self.name


def servers_folder() -> Path:
    """The cache folder with one folder per fetched server."""
    return cache_folder() / "servers"


def fetch(kind: Kind | None = None, way: str | None = None) -> Programs:
    """Return the programs of the most preferred available server; download them if they are not in the cache.

    Safe in several processes at once. A preferred way that failed before is tried again.

    Args:
        kind: which server it must be; without it MySQL is preferred and MariaDB will do.
        way: the name of the only way to try.

    Raises:
        ServerError: every way failed; the text gives the reason of each.
    """
    reasons = []
    for one in _allowed(kind, way):
        try:
            return _prepare(one)
        except ServerError as error:
            reasons.append(f"  {one.name}: {error}")
    tried = "\n".join(reasons)
    raise ServerError(
        f"no {kind or 'MySQL or MariaDB'} server could be fetched; tried in this order:\n{tried}\n"
        "  what to do: give this machine a working apt mirror, or install a server so that mysqld is on PATH"
    )


def fetched(kind: Kind | None = None, way: str | None = None) -> Programs | None:
    """Return the programs of the most preferred server in the cache, without downloading anything."""
    homes = [recorded(one.home) for one in _allowed(kind, way)]
    return next((programs for programs in homes if programs), None)


def _allowed(kind: Kind | None, way: str | None) -> list[Way]:
    return [one for one in ways() if kind in (None, one.kind) and way in (None, one.name)]


def ways() -> list[Way]:
    """Return all ways on this machine, the preferred first."""
    return [
        Way("mysql", "debian-unstable-mysql", lambda home: _debian_unstable("mysql", home, _MYSQL)),
        Way("mysql", "distribution-mysql", lambda home: _from_distribution("mysql", home, _MYSQL)),
        *map(_on_path, servers_on_path()),
        Way(
            "mariadb",
            "distribution-mariadb-plugins",
            lambda home: _from_distribution("mariadb", home, _MARIADB, _MARIADB_PLUGINS),
        ),
        Way("mariadb", NEW_MARIADB, lambda home: _debian_unstable("mariadb", home, _MARIADB)),
    ]


def _on_path(program: Path) -> Way:
    kind: Kind = "mariadb" if program.name == "mariadbd" else "mysql"
    # The time in the name: an upgraded server gets a new template.
    changed = int(program.stat().st_mtime)
    return Way(kind, f"path-{kind}-{changed}", lambda home: installed(program, home))


def _prepare(way: Way) -> Programs:
    def build(home: Path) -> None:
        programs = way.build(home)
        if programs.kind != way.kind:
            raise ServerError(f"it is {programs.kind} {programs.version}, which is too old to go by its own name")
        create_template(programs)
        programs.record()

    programs = recorded(build_once(way.home, build))
    if programs is None:
        raise ServerError(f"{way.home} is not a fetched server; what to do: delete that folder")
    return programs


def _debian_unstable(kind: Kind, home: Path, patterns: tuple[str, ...]) -> Programs:
    system, codename = distribution()
    if system != "debian":
        raise ServerError(f"this system is {system or 'unknown'}, and only a Debian mirror carries Debian unstable")
    official = [s for s in distribution_sources(machine_sources(), codename) if "main" in s.components]
    if not official:
        raise ServerError(f"apt on this machine names no source of {codename} main, so no mirror is known")
    return _download(kind, home, patterns, [official[0].stanza(("unstable",), ("main",))])


def _from_distribution(kind: Kind, home: Path, patterns: tuple[str, ...], alone: str = "") -> Programs:
    _, codename = distribution()
    official = distribution_sources(machine_sources(), codename)
    if not official:
        raise ServerError(f"apt on this machine names no source of the distribution {codename!r}")
    return _download(kind, home, patterns, [source.stanza() for source in official], alone)


def _download(kind: Kind, home: Path, patterns: tuple[str, ...], stanzas: list[str], alone: str = "") -> Programs:
    apt = PrivateApt(home / "apt", stanzas)
    server, *clients = [apt.newest(pattern) for pattern in patterns]
    if server is None:
        raise ServerError(f"the mirror has no {kind} server package")
    archives = apt.download([server, *filter(None, clients)])
    if alone and (package := apt.newest(alone)):
        archives += apt.download_alone(package)
    unpack(archives, home / "root")
    apt.remove()
    return unpacked(kind, home, home / "root")
