"""The button "Test" of a connection logs in to the server of its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loader.airflow.hooks import SourceHook
from tests.e2e.loaded import Loaded

pytestmark = pytest.mark.e2e


@pytest.fixture
def hook(loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceHook:
    """The hook of a connection with the password of the user `guarded` of the source."""
    loaded.execute(
        "CREATE USER IF NOT EXISTS 'guarded'@'%' IDENTIFIED BY 'swordfish'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO 'guarded'@'%'",
    )
    text = loaded.config.read_text().replace(
        'user = "loader"\npassword = ""', 'user = "guarded"\npassword = "airflow:db"'
    )
    (tmp_path / "loader.toml").write_text(text)
    monkeypatch.setenv("LOADER_CONFIG", str(tmp_path / "loader.toml"))
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection("swordfish"))
    return SourceHook("db")


def connection(password: str) -> str:
    return json.dumps({"conn_type": "mysql_source", "password": password})


def test_the_server_answers(hook: SourceHook, loaded: Loaded) -> None:
    success, text = hook.test_connection()
    assert success, text
    assert text.startswith(f"shop: mysql {loaded.server.version}")
    assert ", log up to binlog.0000" in text


def test_the_form_tests_a_copy(hook: SourceHook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TMP_X", connection("swordfish"))
    assert SourceHook("tmp_x").test_connection()[0]


def test_a_wrong_password(hook: SourceHook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection("marlin"))
    success, text = hook.test_connection()
    assert not success
    assert text.startswith("shop: the server refused the user (source guarded@")
    assert "marlin" not in text


def test_no_source_has_a_password_in_airflow(
    hook: SourceHook, loaded: Loaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOADER_CONFIG", str(loaded.config))
    assert hook.test_connection() == (False, 'no source of the configuration has password = "airflow:..."')
    monkeypatch.setenv("LOADER_CONFIG", str(tmp_path / "none.toml"))
    success, text = hook.test_connection()
    assert not success
    assert text.startswith("there is no configuration")
