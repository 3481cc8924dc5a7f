"""A source whose server an Airflow connection has."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.config.file import load_config
from loader.errors import UsageError
from loader.transport.server.address import ServerAddress
from tests.unit.config.configuration import GOOD

FOUND = ServerAddress(host="db", port=3307, user="loader", password="airflow:shop_db", tls_ca="/ca.pem")
_SERVER = 'server = "airflow:shop_db"'


def written(file: Path, keys: str) -> str:
    """The good configuration with these keys instead of the host and the user."""
    lines = [line for line in GOOD.splitlines() if not line.startswith(("host =", "user =", "password =", "port ="))]
    place = lines.index("[sources.shop]") + 1
    file.write_text("\n".join([*lines[:place], *keys.splitlines(), *lines[place:]]), encoding="utf-8")
    return str(file)


def test_the_server_is_asked_for_by_its_reference(write: Path) -> None:
    asked: list[str] = []

    def find(reference: str) -> ServerAddress:
        asked.append(reference)
        return FOUND

    keys = f'{_SERVER}\nread_timeout_seconds = 5\nread_from = "replica"'
    settings = load_config(written(write, keys)).source("shop", find)
    assert asked == ["airflow:shop_db"]
    assert settings.server == settings.transport.server == FOUND.model_copy(update={"read_timeout_seconds": 5})
    assert settings.read_from == settings.server.model_copy(update={"host": "replica"})


def test_outside_of_airflow_an_error_says_what_to_do(write: Path) -> None:
    config = load_config(written(write, _SERVER))
    assert config.at("mysql://db:3307") == []
    with pytest.raises(UsageError, match="the server of the source is known to Airflow only") as refused:
        config.source("shop")
    assert "set host, user and password of the source instead" in refused.value.hint


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (f'{_SERVER}\nhost = "db"\ntls = "off"', "sources.shop: remove host, tls: the connection that server names"),
        ('server = "env:X"', "sources.shop.server: write airflow:NAME, the id of an Airflow connection"),
        ('server = "airflow:"', "sources.shop.server: write airflow:NAME, the id of an Airflow connection"),
        ('user = "loader"', "sources.shop.host: this key is required"),
    ],
)
def test_a_wrong_key_is_named(keys: str, says: str, write: Path) -> None:
    with pytest.raises(UsageError) as refused:
        load_config(written(write, keys))
    assert refused.value.why.startswith(says)
