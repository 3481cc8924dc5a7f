"""The private names of PyMySQL that the loader uses."""

from __future__ import annotations

import pytest
from pymysql.connections import Connection

from loader.errors import UsageError
from loader.transport.server.driver import check_driver


def test_the_installed_version_has_every_name() -> None:
    check_driver(Connection(defer_connect=True))


def test_a_version_without_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(defer_connect=True)
    monkeypatch.delattr(Connection, "_read_packet")
    with pytest.raises(UsageError, match="is not supported") as caught:
        check_driver(connection)
    assert caught.value.why == "it has no _read_packet"
