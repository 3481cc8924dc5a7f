"""Accounts that need a certificate: the loader's own is shown to real servers, or one that they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.servers import Kind, start_server
from infra.servers.server import Server
from loader.doctor.server import server_findings
from loader.errors import LoaderError, UsageError
from loader.resources import sql
from loader.staging.documents import TableFilter
from loader.transport.network import NetworkTransport
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import AccessDenied, connected
from tests.support.certificates import Certificates, client_certificate, make_certificates

pytestmark = pytest.mark.integration

TRIES = 6
"""With TLS 1.3 a refusal arrives while the client writes or while it reads, by chance."""


@dataclass
class Strict:
    """A server with the user `loader`, who needs a certificate of the authority in the folder."""

    server: Server
    files: Certificates
    folder: Path

    def address(self, client: tuple[Path, Path] | None = None, **options: Any) -> ServerAddress:
        own = {"tls_cert": str(client[0]), "tls_key": str(client[1])} if client else {}
        given = {"tls_ca": str(self.files.authority), **own, **options}
        return ServerAddress(host=self.server.host, port=self.server.port, user="loader", **given)

    def query(self, statement: str, address: ServerAddress | None = None) -> Any:
        root = ServerAddress(host=self.server.host, port=self.server.port, user="root")
        with connected(address or root) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()


@pytest.fixture(scope="module", params=["mysql", "mariadb"])
def strict(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Strict]:
    kind: Kind = request.param
    folder = tmp_path_factory.mktemp(f"certificates-{kind}")
    files = make_certificates(folder)
    with start_server(kind, folder / "server", files.options) as server:
        found = Strict(server, files, folder)
        found.query("CREATE USER 'loader'@'%' REQUIRE X509")
        for statement in sql("source/grants").split(";"):
            found.query(statement)
        yield found


def refused(address: ServerAddress) -> LoaderError:
    with pytest.raises(LoaderError) as caught, connected(address):
        pass
    return caught.value


def test_sessions_and_dumps_show_the_certificate(strict: Strict) -> None:
    address = strict.address(client_certificate(strict.folder))
    assert strict.query("SHOW STATUS LIKE 'Ssl_cipher'", address)[0][1]
    file, stop = strict.query("SHOW BINARY LOGS", address)[0][:2]
    with NetworkTransport(address).open(file, 4, stop) as log:
        assert log.read(1)


def test_the_doctor_logs_in(strict: Strict) -> None:
    address = strict.address(client_certificate(strict.folder))

    def errors(address: ServerAddress) -> list[tuple[str, str]]:
        found = server_findings(
            address,
            TableFilter(include=("shop.*",)),
            lambda: NetworkTransport(address),
            needed=lambda _: "",
            min_hours=0,
        )
        return [(one.name, one.what) for one in found if one.severity == "error"]

    assert [error for error in errors(address) if error[0] == "server"] == []
    (name, what), *others = errors(strict.address(client_certificate(strict.folder, days=-1)))
    assert (name, others) == ("server", [])
    assert "the server refused the certificate of the loader" in what
    assert "certificate expired" in what


def test_an_account_that_needs_a_certificate_says_so(strict: Strict) -> None:
    error = refused(strict.address())
    assert isinstance(error, AccessDenied)
    assert "tls_cert" in error.hint


@pytest.mark.parametrize("why", ["expired", "unknown"])
def test_a_certificate_that_the_server_refuses(strict: Strict, tmp_path: Path, why: str) -> None:
    if why == "unknown":
        make_certificates(tmp_path)
    client = client_certificate(strict.folder, days=-1) if why == "expired" else client_certificate(tmp_path)
    said = {"expired": "certificate expired", "unknown": "alert unknown ca"}[why]
    for _ in range(TRIES):
        error = refused(strict.address(client))
        assert isinstance(error, UsageError), error
        assert error.what == "the server refused the certificate of the loader"
        assert error.why.endswith(said)
        assert error.where["file"] == str(client[0])
        assert "tls_cert and tls_key" in error.hint
        assert not error.retryable


def test_a_key_of_another_certificate(strict: Strict) -> None:
    (cert, _), (_, key) = client_certificate(strict.folder), client_certificate(strict.folder, days=3)
    error = refused(strict.address((cert, key)))
    assert error.what == "the TLS certificate cannot be used"
    missing = refused(strict.address((strict.folder / "nowhere.pem", key)))
    assert missing.what == "the TLS certificate cannot be used"


def test_a_server_of_another_authority(strict: Strict, tmp_path: Path) -> None:
    other = make_certificates(tmp_path).authority
    error = refused(strict.address(client_certificate(strict.folder), tls_ca=str(other)))
    assert error.what == "the certificate of the server is not trusted"
    assert not error.retryable
