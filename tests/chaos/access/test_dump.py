"""A dumped table is made again as it was."""

from __future__ import annotations

import pytest

from infra.servers import Server
from tests.chaos.access.dump import dump
from tests.chaos.access.source import History, Session

_DATABASE = "chaos_dump"
_TABLE = r"""CREATE TABLE `odd ``'\\` (
  id INT PRIMARY KEY COMMENT 'it''s; \\', words VARCHAR(9) NOT NULL DEFAULT 'dé''\n\\\0', label ENUM('é', '''') NOT NULL,
  bits VARBINARY(9) NOT NULL DEFAULT x'00ff270a0d5c1a', padded BINARY(3) DEFAULT x'ff'
) DEFAULT CHARSET=utf8mb4"""


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_defaults_that_are_not_text(kind: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{kind}_server")
    session = Session(server, History(), "dump", database=_DATABASE)
    for one in (f"CREATE DATABASE {_DATABASE}", f"USE {_DATABASE}", _TABLE):
        assert session.execute(one) == 0
    (name,) = session.tables()
    table = "`" + name.replace("`", "``") + "`"
    assert session.execute(f"INSERT INTO {table} (id) VALUES (1)") == 0
    dumped = dump(session)
    assert session.execute(f"DROP TABLE {table}") == 0
    assert [session.execute(one) for one in dumped[name]] == [0] * len(dumped[name])
    assert dump(session) == dumped
    assert session.execute(f"INSERT INTO {table} (id) VALUES (2)") == 0
    rows = session.rows(f"SELECT hex(words), label, hex(bits), hex(padded) FROM {table}")
    assert rows == [("64C3A9270A5C00", "é", "00FF270A0D5C1A", "FF0000")] * 2
    session.execute(f"DROP DATABASE {_DATABASE}")
    session.close()
