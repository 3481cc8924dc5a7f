"""What `loader airflow install` does with files. The installed wheel runs the whole command in tests/e2e."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from loader.cli.commands.setup import airflow


def test_dag_files_of_older_versions_go_unless_somebody_changed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped, dags = tmp_path / "shipped", tmp_path / "dags"
    shipped.mkdir()
    dags.mkdir()
    old = b"dag = 1\n"
    names = ("continuous_delta.py", "replay_binlog.py", "maintain_tables.py")
    known = [hashlib.sha256(b"older").hexdigest(), hashlib.sha256(old).hexdigest()]
    digests = {name: known for name in names}  # noqa: C420 - JSON copies them
    (shipped / "superseded_dags.json").write_text(json.dumps(digests))
    monkeypatch.setattr(airflow, "folder", lambda _: shipped)
    (dags / names[0]).write_bytes(old)
    (dags / names[1]).write_bytes(old + b"# ours\n")
    (dags / "other.py").write_bytes(old)
    assert airflow._remove_superseded(dags) == ([str(dags / names[0])], [str(dags / names[1])])
    assert {file.name for file in dags.iterdir()} == {names[1], "other.py"}
    assert airflow._remove_superseded(dags) == ([], [str(dags / names[1])])


def test_the_digests_of_older_dag_files_are_shipped() -> None:
    assert set(airflow._shipped("superseded_dags.json")) == {
        "continuous_delta.py",
        "initial_load.py",
        "maintain_tables.py",
        "replay_binlog.py",
    }
