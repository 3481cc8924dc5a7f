"""What a benchmark prints and keeps of its figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def parser(description: str | None, quick: str) -> argparse.ArgumentParser:
    """Return the parser of a benchmark: its first line, `--quick` and `--json`.

    Args:
        description: the docstring of the benchmark.
        quick: what `--quick` does.
    """
    found = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    found.add_argument("--quick", action="store_true", help=quick)
    found.add_argument("--json", type=Path, help="write all figures there")
    return found


def report(figures: Iterable[dict[str, Any]], file: Path | None) -> None:
    """Print each figure as it comes, then write all of them to the file, if there is one."""
    kept = []
    for figure in figures:
        kept.append(figure)
        print(", ".join(f"{name}: {value}" for name, value in figure.items()), flush=True)
    if file:
        file.write_text(json.dumps(kept, indent=1))
