"""The package sources this machine already trusts: mirror addresses and keyrings are read here, never written down."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

APT_FOLDER = Path("/etc/apt")


@dataclass(frozen=True)
class Source:
    """One source of binary packages: a stanza of a `.sources` file or a line of a `.list` file."""

    uris: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()  # Signed-By and Trusted, as the machine has them

    def stanza(self, suites: tuple[str, ...] = (), components: tuple[str, ...] = ()) -> str:
        """The source as a deb822 stanza, for other suites and components if they are given."""
        fields = [
            ("Types", "deb"),
            ("URIs", self.uris),
            ("Suites", " ".join(suites or self.suites)),
            ("Components", " ".join(components or self.components)),
            *self.options,
        ]
        return "".join(f"{name}: {value}\n" for name, value in fields)


def machine_sources(apt_folder: Path = APT_FOLDER) -> list[Source]:
    """Every enabled source of binary packages that apt itself would read, in its order."""
    lists = [apt_folder / "sources.list", *sorted(apt_folder.glob("sources.list.d/*.list"))]
    stanzas = sorted(apt_folder.glob("sources.list.d/*.sources"))
    found = [s for path in lists if path.is_file() for s in parse_list(path.read_text())]
    return found + [s for path in stanzas for s in parse_stanzas(path.read_text())]


def parse_list(text: str) -> Iterator[Source]:
    """The sources of a file of lines like `deb [signed-by=/a/key.gpg] http://mirror/debian trixie main`."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<rest>[^#]+)", line)
        if match:
            suite, *components = match["rest"].split()
            given = dict(option.split("=", 1) for option in (match["options"] or "").split())
            yield Source(match["uri"], (suite,), tuple(components), _trust(given))


def parse_stanzas(text: str) -> Iterator[Source]:
    """The sources of a deb822 file, without those that are switched off or hold source packages only."""
    without_comments = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", without_comments):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", stanza, flags=re.MULTILINE)
        }
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes") != "no":
            suites, components = fields["suites"].split(), fields.get("components", "").split()
            yield Source(" ".join(fields["uris"].split()), tuple(suites), tuple(components), _trust(fields))


def _trust(options: dict[str, str]) -> tuple[tuple[str, str], ...]:
    known = {name.lower(): value for name, value in options.items()}
    # A key may stand in the stanza itself, on continuation lines that must stay indented.
    return tuple((n, known[n.lower()]) for n in ("Signed-By", "Trusted") if n.lower() in known)


def distribution() -> tuple[str, str]:
    """The identity and the code name of this system, such as ("debian", "trixie"); empty where unknown."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "", ""
    return release.get("ID", ""), release.get("VERSION_CODENAME", "")


def distribution_sources(sources: list[Source], codename: str) -> list[Source]:
    """The sources of the distribution itself: its code name, its updates and its security fixes."""
    aliases = {codename, "oldstable", "stable", "testing", "unstable", "sid"}
    suites = {f"{name}{part}" for name in aliases for part in ("", "-updates", "-security", "/updates")}
    return [source for source in sources if suites.intersection(source.suites)]
