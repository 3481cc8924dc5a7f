"""Hooks of MkDocs: add the pages that are generated from the code, and the script that draws the diagrams."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from infra.pages.commands import commands_page
from infra.pages.configuration import configuration_page

_MERMAID = Path(__file__).resolve().parents[1] / "mermaid.sh"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated files; they exist only in the site."""
    pages = {"reference/configuration.md": configuration_page(), "reference/commands.md": commands_page()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=mermaid()))
    return files


def mermaid() -> str:
    """Return the path of mermaid.min.js, which the first call fetches."""
    return subprocess.run([_MERMAID], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
