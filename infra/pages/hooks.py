"""Hooks of MkDocs: add the generated pages, those at the root of the project, and the script for the diagrams."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from infra.pages.commands import commands_page
from infra.pages.configuration import configuration_page

_ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that are not in docs/."""
    pages = {"reference/configuration.md": configuration_page(), "reference/commands.md": commands_page()}
    pages |= {f"{name.lower()}.md": root_page(name) for name in ("CHANGELOG", "SECURITY")}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=mermaid()))
    return files


def root_page(name: str) -> str:
    """Return a page at the root of the project, with its links as the site has them."""
    return (_ROOT / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")


def mermaid() -> str:
    """Return the path of mermaid.min.js, which the first call fetches."""
    return subprocess.run(
        [_ROOT / "infra" / "mermaid.sh"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
