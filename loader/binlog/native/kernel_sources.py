"""Finds the source files that shape a kernel: its module, and all modules that it imports, directly or not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_IMPORT = re.compile(r"^from (loader[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
_ROOT = Path(__file__).parents[3]


def sources_of(file: Path, packages: tuple[str, ...]) -> list[Path]:
    """Return a module's file and those of all modules that it imports from these packages, in the order of their paths.

    Only imports at the start of a line count: a kernel's constants and parts are globals of its module.
    """
    found: set[Path] = set()
    pending = [file]
    while pending:
        file = pending.pop()
        if file.is_file() and file not in found:
            found.add(file)
            names = _imports(file.read_text("utf-8"))
            pending += [
                _ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in names if name.startswith(packages)
            ]
    return sorted(found)


def _imports(source: str) -> Iterator[str]:
    """Yield the modules that a module may import. A name behind `import` can be a module of the package before it."""
    for package, several, line in _IMPORT.findall(source):
        yield package
        for name in re.sub(r"#.*", "", several or line).split(","):
            if words := name.split():
                yield f"{package}.{words[0]}"
