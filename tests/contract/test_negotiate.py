"""Tokens of a real realm, and the requests of WebHDFS's client that have them."""

from __future__ import annotations

import base64
import platform
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from infra.kerberos import Kerberos, run_kerberos
from infra.servers.process import HOST, wait_until
from loader.errors import LoaderError, StoreUnavailable, UsageError
from loader.store import negotiate
from loader.store.hdfs import HdfsRemote
from loader.store.negotiate import token

pytestmark = pytest.mark.integration

SERVICE = f"HTTP/{HOST}"
SPNEGO = b"\x2b\x06\x01\x05\x05\x02"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kerberos, Path]]:
    """A realm with a web server, and the keys of a user."""
    with run_kerberos(tmp_path_factory.mktemp("kerberos")) as realm:
        realm.keytab(SERVICE)
        yield realm, realm.keytab("loader")


@pytest.fixture
def realm(running: tuple[Kerberos, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kerberos:
    """The realm of this process, which has no ticket."""
    for name, value in running[0].environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "ticket"))
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    return running[0]


@pytest.fixture
def keytab(running: tuple[Kerberos, Path]) -> Path:
    return running[1]


def failure(host: str = HOST) -> LoaderError:
    with pytest.raises(LoaderError) as caught:
        token("HTTP", host)
    assert caught.value.where == {"service": f"HTTP/{host}", "machine": platform.node()}
    return caught.value


def has_expired() -> bool:
    try:
        token("HTTP", HOST)
    except StoreUnavailable:
        return True
    return False


def test_a_ticket_gives_tokens(realm: Kerberos, keytab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.ticket(keytab, "loader")))
    made = {token("HTTP", HOST) for _ in range(3)}
    assert len(made) == 3
    assert all(SPNEGO in one[:20] for one in made)


def test_a_key_table_gives_a_ticket(realm: Kerberos, keytab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert realm
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
    assert SPNEGO in token("HTTP", HOST)[:20]


def test_no_ticket(realm: Kerberos, tmp_path: Path) -> None:
    assert realm
    error = failure()
    assert isinstance(error, UsageError)
    assert error.what == "there is no Kerberos ticket for HDFS"
    assert str(tmp_path / "ticket") in error.why
    assert "kinit" in error.hint
    assert not error.retryable


def test_a_ticket_that_has_expired(realm: Kerberos, keytab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = realm.ticket(keytab, "loader", "1s")
    monkeypatch.setenv("KRB5CCNAME", str(ticket))
    assert wait_until(has_expired, 10)
    error = failure()
    assert error.what == "the Kerberos ticket for HDFS has expired"
    assert error.retryable
    assert "kinit" in error.hint


def test_a_web_server_that_the_realm_does_not_know(
    realm: Kerberos, keytab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.ticket(keytab, "loader")))
    error = failure("localhost")
    assert isinstance(error, UsageError)
    assert error.what == "Kerberos does not know the web server of HDFS"
    assert "staging.hdfs.webhdfs" in error.hint


def test_a_kdc_that_is_down(realm: Kerberos, keytab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.ticket(keytab, "loader")))
    realm.stop()
    try:
        error = failure()
    finally:
        realm.start()
    assert isinstance(error, StoreUnavailable)
    assert error.what == "the Kerberos server does not answer"


def test_no_library(realm: Kerberos, monkeypatch: pytest.MonkeyPatch) -> None:
    assert realm
    monkeypatch.setattr(negotiate, "_LIBRARIES", ("libnone.so",))
    with pytest.raises(UsageError, match="library is not installed"):
        token("HTTP", HOST)


class Guarded(ThreadingHTTPServer):
    """A web server that asks for a token once, gives a cookie for it, and remembers the requests."""

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.heard: list[tuple[str, bool, bool]] = []  # the query, and whether there was a token or a cookie


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Guarded

    def do_GET(self) -> None:
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        proved = scheme == "Negotiate" and SPNEGO in base64.b64decode(given)[:20]
        known = "hadoop.auth=" in self.headers.get("Cookie", "")
        self.server.heard.append((self.path.partition("?")[2], proved, known))
        body = b'{"FileStatuses": {"FileStatus": []}}'
        self.send_response(200 if proved or known else 401)
        if proved:
            self.send_header("Set-Cookie", 'hadoop.auth="u=loader&t=kerberos"; Path=/; HttpOnly')
        if not (proved or known):
            self.send_header("WWW-Authenticate", "Negotiate")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with Guarded() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_requests_get_a_token_when_they_need_it_and_then_name_no_user(
    realm: Kerberos, keytab: Path, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.ticket(keytab, "loader")))
    remote = HdfsRemote(f"hdfs://{HOST}:8020/lake?webhdfs=http://{HOST}:{guarded.server_port}&user=etl")
    for _ in range(2):
        assert remote.folders("a/") == ()
    assert guarded.heard == [
        ("user.name=etl&op=LISTSTATUS", False, False),
        ("op=LISTSTATUS", True, False),
        ("op=LISTSTATUS", False, True),
    ]
