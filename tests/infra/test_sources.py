"""Mirrors and keyrings come from the machine's own apt sources, in every form these have."""

from __future__ import annotations

from pathlib import Path

from infra.servers.sources import (
    Source,
    distribution_sources,
    machine_sources,
    parse_list,
    parse_stanzas,
)

UBUNTU = """\
Types: deb deb-src
URIs: http://archive.example/ubuntu/
Suites: noble noble-updates
Components: main universe
Signed-By: /usr/share/keyrings/ubuntu.gpg

# a comment
Enabled: no
Types: deb
URIs: http://off.example/
Suites: noble
Components: main

Types: deb-src
URIs: http://src.example/
Suites: noble
Components: main

Types: deb
# a comment inside
URIs: http://tools.example/
Suites: stable-tools
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----
"""


def test_stanzas() -> None:
    ubuntu, tools = parse_stanzas(UBUNTU)
    assert ubuntu.suites == ("noble", "noble-updates")
    assert ubuntu.options == (("Signed-By", "/usr/share/keyrings/ubuntu.gpg"),)
    assert tools.uris == "http://tools.example/"
    assert tools.stanza().endswith(" mQINBF\n -----END PGP PUBLIC KEY BLOCK-----\n")
    assert list(parse_stanzas(tools.stanza())) == [tools]


def test_lines() -> None:
    text = """
        # deb http://off.example/ trixie main
        deb [arch=amd64 signed-by=/a/key.gpg] http://mirror.example/debian trixie main contrib # more
        deb-src http://mirror.example/debian trixie main
        deb http://mirror.example/security trixie-security main
    """
    first, second = parse_list(text)
    assert first.components == ("main", "contrib")
    assert first.options == (("Signed-By", "/a/key.gpg"),)
    assert second.suites == ("trixie-security",)


def test_stanza_for_another_suite_keeps_mirror_and_key() -> None:
    source = Source("http://m.example/d", ("trixie",), ("main",), (("Signed-By", "/a/key.gpg"),))
    assert source.stanza(("unstable",), ("main",)) == (
        "Types: deb\nURIs: http://m.example/d\nSuites: unstable\nComponents: main\nSigned-By: /a/key.gpg\n"
    )


def test_only_the_distribution_itself_is_used() -> None:
    ubuntu, tools = parse_stanzas(UBUNTU)
    assert distribution_sources([tools, ubuntu], "noble") == [ubuntu]


def test_files_that_apt_ignores_are_ignored(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("deb http://m.example/d trixie main\n")
    (parts / "off.list.disabled").write_text("deb http://off.example/d trixie main\n")
    (parts / "u.sources").write_text(UBUNTU)
    assert [s.uris for s in machine_sources(tmp_path)] == [
        "http://m.example/d",
        "http://archive.example/ubuntu/",
        "http://tools.example/",
    ]
