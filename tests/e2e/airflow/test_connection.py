"""A connection of the type of a source: its button "Test", and a source whose server it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loader import pipeline
from loader.airflow.connections import secret
from loader.airflow.hooks import SourceHook
from loader.airflow.sources import settings_of
from loader.errors import UsageError
from tests.e2e.loaded import Loaded

pytestmark = pytest.mark.e2e


@pytest.fixture
def hook(loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceHook:
    """The hook of a connection with the password of the user `guarded` of the source."""
    loaded.execute(
        "CREATE USER IF NOT EXISTS 'guarded'@'%' IDENTIFIED BY 'swordfish'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO 'guarded'@'%'",
    )
    configure(loaded, tmp_path, monkeypatch, 'user = "guarded"\npassword = "airflow:db"')
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection("swordfish"))
    return SourceHook("db")


def configure(loaded: Loaded, folder: Path, monkeypatch: pytest.MonkeyPatch, user: str) -> str:
    """Write the configuration with other keys for user and password, and return it."""
    text = loaded.config.read_text().replace('user = "loader"\npassword = ""', user)
    (folder / "loader.toml").write_text(text)
    monkeypatch.setenv("LOADER_CONFIG", str(folder / "loader.toml"))
    return text


def connection(password: str, **fields: object) -> str:
    return json.dumps({"conn_type": "binlog_source", "password": password, **fields})


def server(loaded: Loaded, **fields: object) -> dict[str, Any]:
    """The fields of a form that name the server."""
    return {"host": loaded.server.host, "port": loaded.server.port, "login": "guarded", **fields}


# A connection with the server.


def test_the_server_of_the_form_answers(
    hook: SourceHook, loaded: Loaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The configuration does not matter."""
    monkeypatch.setenv("LOADER_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection("swordfish", **server(loaded)))
    success, text = hook.test_connection()
    assert success, text
    place = f"guarded@{loaded.server.host}:{loaded.server.port}"
    assert text.startswith(f"mysql {loaded.server.version}")
    assert f" at {place}, log up to binlog.0000" in text


@pytest.mark.parametrize(
    ("fields", "says", "cure"),
    [
        ({"login": "stranger"}, "the server refused the user (source stranger@", ""),
        ({"port": 1}, "the server does not answer (source guarded@127.0.0.1:1", ""),
        ({"extra": {"tls_ca": "/nowhere.pem"}}, "the TLS authority cannot be read (key /nowhere.pem)", "set tls_ca to"),
        ({"login": ""}, "the Airflow connection has no valid server (connection db)", "Admin, Connections"),
    ],
)
def test_a_form_that_is_wrong_says_what_to_do(
    fields: dict[str, object],
    says: str,
    cure: str,
    hook: SourceHook,
    loaded: Loaded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection("swordfish", **server(loaded, **fields)))
    success, text = hook.test_connection()
    assert not success
    assert text.startswith(says)
    assert cure in text
    assert "what to do: " in text
    assert "swordfish" not in text


def test_a_source_takes_its_server_from_the_connection(
    hook: SourceHook, loaded: Loaded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = configure(loaded, tmp_path, monkeypatch, 'server = "airflow:db"')
    lines = [line for line in text.splitlines() if not line.startswith(("host =", "port ="))]
    (tmp_path / "loader.toml").write_text("\n".join(lines))
    with pytest.raises(UsageError, match="the Airflow connection has no valid server"):
        settings_of("shop")
    monkeypatch.setenv("AIRFLOW_CONN_DB", connection("swordfish", **server(loaded)))
    settings = settings_of("shop")
    with secret(settings.server.password):
        lag = pipeline.source_lag(settings)
    assert (lag.unreachable, lag.behind is None) == (None, False)
    refused = loaded.loader("--config", str(tmp_path / "loader.toml"), "status")
    assert refused.returncode == 2
    assert "the server of the source is known to Airflow only" in refused.stderr


# A connection with a password only.


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
    success, text = hook.test_connection()
    assert not success
    assert text.startswith("the connection has no host")
    assert 'why: no source of the configuration has password = "airflow:..."' in text
    monkeypatch.setenv("LOADER_CONFIG", str(tmp_path / "none.toml"))
    success, text = hook.test_connection()
    assert not success
    assert text.startswith("there is no configuration")
