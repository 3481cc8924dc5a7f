"""A staging store whose documents are signed: whole runs go on, and nobody else can put a document in."""

from __future__ import annotations

import pytest

from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]


def test_signed_documents_are_followed_through_a_whole_run(loaded: Loaded) -> None:
    root = f'root = "file://{loaded.home}/staging"'
    loaded.configure(staging=f'{root}\nsigning_key = "env:STAGING_KEY"')
    loaded.env["STAGING_KEY"] = "0123456789abcdef"
    loaded.execute(*changes(70))
    unsigned = loaded.loader("run")
    assert (unsigned.returncode, "is not signed" in unsigned.stderr) == (4, True)
    assert loaded.json("staged", "sign")["signed"] > 0
    assert loaded.json("staged", "sign")["signed"] == 0
    assert loaded.json("run")["extracts"][0]["status"] == "staged"
    assert loaded.differences() == NOTHING_DIFFERS
    newest = max((loaded.home / "staging" / "shop").rglob("manifest.json"), key=lambda path: path.stat().st_mtime)
    whole = newest.read_bytes()
    newest.write_bytes(whole.replace(b'"loader_version"', b'"loader_Version"'))
    loaded.execute(*changes(71))
    changed = loaded.loader("run")
    assert (changed.returncode, "the signature of a staged document is wrong" in changed.stderr) == (4, True)
    newest.write_bytes(whole)
    assert loaded.json("run")["extracts"][0]["status"] == "staged"
    assert loaded.differences() == NOTHING_DIFFERS
