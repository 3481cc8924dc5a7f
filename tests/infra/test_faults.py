"""The tests that docs/reference/faults.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_is_named_exists() -> None:
    text = (_ROOT / "docs" / "reference" / "faults.md").read_text(encoding="utf-8")
    sources = {path: path.read_text(encoding="utf-8") for path in (_ROOT / "tests").rglob("*.py")}
    functions = {name for source in sources.values() for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    named = set(re.findall(r"\b(test_\w+)\b(?!\.py)", text))
    assert len(named) > 40
    assert named - functions == set()
    files = re.findall(r"`([\w/]*test_\w+\.py)`", text)
    missing = [file for file in files if not any(str(path).endswith(f"/{file}") for path in sources)]
    assert (len(files) > 15, missing) == (True, [])
