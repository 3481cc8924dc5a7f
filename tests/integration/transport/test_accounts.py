"""Dumps under every kind of account and connection that the servers' own replicas use."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import UsageError
from loader.model.position import Interval
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import AccessDenied
from tests.conftest import StartServer
from tests.integration.binlog.source import Source, extracted
from tests.integration.initial_load.test_tls import certificate

pytestmark = pytest.mark.integration
ACCOUNTS = {
    "caching_sha2": ("mysql", "CREATE USER replica IDENTIFIED WITH caching_sha2_password BY 'se cret'"),
    "sha256": ("mysql", "CREATE USER replica IDENTIFIED WITH sha256_password BY 'se cret'"),
    "ed25519": ("mariadb", "CREATE USER replica IDENTIFIED VIA ed25519 USING PASSWORD('se cret')"),
    "native": ("mariadb", "CREATE USER replica IDENTIFIED VIA mysql_native_password USING PASSWORD('se cret')"),
}


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICA", "se cret")


def check(source: Source, address: ServerAddress, folder: Path) -> None:
    """The dump of a transaction under that address is what the server's files have."""
    start = source.mark()
    source.run("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    interval = Interval(start, source.mark())
    there = extracted(source, NetworkTransport(address), folder / "there", interval)
    files = extracted(source, source.files, folder / "files", interval)
    assert there.files == files.files
    assert files.files


@pytest.mark.parametrize("account", list(ACCOUNTS))
@pytest.mark.parametrize("tls", [True, False])
def test_an_account(account: str, tls: bool, fresh_server: StartServer, tmp_path: Path) -> None:
    """Without TLS the servers' sha2 accounts take the password encrypted by the server's RSA key."""
    kind, statement = ACCOUNTS[account]
    cert, key = certificate(tmp_path)
    options = {"ssl_ca": str(cert), "ssl_cert": str(cert), "ssl_key": str(key)} if tls else {}
    options |= {"require_secure_transport": "ON"} if tls else {}
    if account == "ed25519":
        options["plugin_load_add"] = "auth_ed25519"
    source = Source(fresh_server(kind, options), "accounts", tls_ca=str(cert) if tls else "")
    source.run(statement, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO replica")
    address = source.address.model_copy(
        update={"user": "replica", "password": "env:REPLICA", "tls_ca": str(cert) if tls else ""}
    )
    check(source, address, tmp_path)
    wrong = NetworkTransport(address.model_copy(update={"password": "env:HOME"}))
    with pytest.raises(AccessDenied), wrong.open(source.mark().file, 4, 100):
        pass


def test_a_certificate_of_another_authority_is_refused(fresh_server: StartServer, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    cert, key = certificate(tmp_path / "one")
    other, _ = certificate(tmp_path / "other")
    options = {"ssl_ca": str(cert), "ssl_cert": str(cert), "ssl_key": str(key), "require_secure_transport": "ON"}
    source = fresh_server("mysql", options)
    address = ServerAddress(host=source.host, port=source.port, user=source.user, tls_ca=str(other))
    transport = NetworkTransport(address)
    with pytest.raises(UsageError, match="not trusted") as caught, transport.open("binlog.000001", 4, 100):
        pass
    assert caught.value.what == "the certificate of the server is not trusted"
    assert caught.value.why == "self-signed certificate"
    assert "tls_ca" in caught.value.hint
