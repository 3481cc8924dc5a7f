"""What a server gets of the password, by what it asks for and by how it is connected."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pymysql
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from loader.errors import LoaderError, UsageError
from loader.transport.server.address import ServerAddress
from loader.transport.server.connection import connected
from tests.integration.initial_load.test_tls import certificate
from tests.unit.transport.hostile import OK, Wire, any_one, hostile

pytestmark = pytest.mark.timeout(30)
SECRET = "open sesame"
CLEAR = ["mysql_clear_password", "dialog", "mysql_old_password", "auth_pam", ""]


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this machine for one on the network."""
    monkeypatch.setattr(ServerAddress, "on_loopback", False)


THEIRS = rsa.generate_private_key(65537, 2048)
OURS = rsa.generate_private_key(65537, 2048)


def pem(key: rsa.RSAPrivateKey) -> bytes:
    """The public half."""
    encoding, kind = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(encoding, kind)


def opened(key: rsa.RSAPrivateKey, payload: bytes) -> bool:
    """Whether a packet was encrypted for that key."""
    sha1 = hashes.SHA1()  # noqa: S303 - as the protocol has it
    try:
        key.decrypt(payload, padding.OAEP(padding.MGF1(sha1), sha1, None))
    except ValueError:
        return False
    return True


def switching(plugin: str, *more: bytes) -> Any:
    """Ask for another plug-in, then send more packets, each after an answer."""

    def script(wire: Wire) -> None:
        wire.greet()
        wire.receive()
        wire.send(b"\xfe" + plugin.encode() + b"\0" + (b"\2Password: " if plugin == "dialog" else b"x" * 20 + b"\0"))
        for packet in (*more, OK):
            if not wire.receive():
                return
            wire.send(packet)
        wire.serve(lambda *_: False)

    return script


def greeting(plugin: str, *more: bytes) -> Any:
    """Ask for a plug-in at once, then send more packets, each after an answer."""

    def script(wire: Wire) -> None:
        wire.greet(plugin)
        for packet in more:
            if not wire.receive():
                return
            wire.send(packet)
        wire.serve(lambda *_: False)

    return script


def attempt(script: Any, **address: object) -> tuple[LoaderError | None, bytes]:
    """What became of a connection, and all that the server heard."""
    with hostile(script, password="env:SECRET", **address) as server:
        try:
            with connected(server.address):
                pass
        except LoaderError as error:
            return error, server.heard
        return None, server.heard


@pytest.mark.parametrize("plugin", CLEAR)
@pytest.mark.parametrize("script", [switching, greeting])
@pytest.mark.parametrize("tls", ["", "off"])
def test_the_password_is_not_sent_in_clear(plugin: str, script: Any, tls: str) -> None:
    """Some versions of the driver take what then comes for a welcome, which tells nobody the password."""
    error, heard = attempt(script(plugin, b"\2Password: "), tls=tls)
    assert SECRET.encode() not in heard
    assert isinstance(error, LoaderError) or not plugin


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog"])
def test_a_refusal_says_what_the_server_asked_for(plugin: str) -> None:
    error, _ = attempt(switching(plugin))
    assert isinstance(error, UsageError)
    assert (error.what, plugin in error.why) == ("the password is not sent to the server", True)


FULL = b"\1\4"  # of caching_sha2_password: the whole password is asked for


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    "script",
    [
        switching("caching_sha2_password", FULL, b"\1" + pem(THEIRS)),
        greeting("caching_sha2_password", FULL, b"\1" + pem(THEIRS)),
        switching("sha256_password", b"\1" + pem(THEIRS)),
        greeting("sha256_password", b"\1" + pem(THEIRS)),
    ],
)
@pytest.mark.parametrize("pinned", [True, False])
def test_the_password_is_not_encrypted_by_a_key_of_anybody(script: Any, pinned: bool, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(pem(OURS))
    with hostile(
        script, password="env:SECRET", tls="off", server_public_key=str(tmp_path / "key.pem") if pinned else ""
    ) as server:
        why = ""
        try:
            with connected(server.address):
                pass
        except LoaderError as error:
            why = error.why
        assert not any(opened(THEIRS, payload) for wire in server.wires for payload in wire.heard)
    assert pinned or "could have sent this key" in why


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    "script",
    [
        switching("caching_sha2_password", FULL, OK), greeting("caching_sha2_password", FULL, OK),
        switching("sha256_password", OK), greeting("sha256_password", b"\1" + pem(OURS), OK),
    ],
)  # fmt: skip
def test_the_key_of_the_configuration_encrypts_the_password(script: Any, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(pem(OURS) + b"\n")
    with hostile(script, password="env:SECRET", tls="off", server_public_key=str(tmp_path / "key.pem")) as server:
        with connected(server.address):
            pass
        assert sum(opened(OURS, payload) for wire in server.wires for payload in wire.heard) == 1


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("tls", ["", "required"])
def test_a_server_without_tls_hears_nothing(tls: str) -> None:
    error, heard = attempt(any_one(lambda *_: False), tls=tls)
    assert isinstance(error, UsageError)
    assert error.what == "the server offers no TLS, which the source requires"
    assert heard == b""


def test_tls_that_is_required_of_this_machine_too(tmp_path: Path) -> None:
    cert, _ = certificate(tmp_path)
    for address in ({"tls": "required"}, {"tls_ca": str(cert)}):
        error, heard = attempt(any_one(lambda *_: False), **address)
        assert isinstance(error, UsageError)
        assert heard == b""


@pytest.mark.usefixtures("far")
def test_without_an_authority_the_machines_own_are_asked(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)

    def script(wire: Wire) -> None:
        wire.greet(tls=True)
        wire.wrap(context)

    error, heard = attempt(script)
    assert isinstance(error, UsageError)
    assert error.what == "the certificate of the server is not trusted"
    assert error.why == "self-signed certificate"
    assert SECRET.encode() not in heard
    assert len(heard) == 32  # the request for TLS, which names no user


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("given", [True, False])
def test_a_server_that_asks_for_a_certificate(given: bool, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(cert))
    context.load_cert_chain(cert, key)
    context.verify_mode = ssl.CERT_REQUIRED

    def script(wire: Wire) -> None:
        wire.greet(tls=True)
        wire.wrap(context)
        wire.receive()
        wire.send(OK)
        wire.serve(lambda *_: False)

    own = {"tls_cert": str(cert), "tls_key": str(key)} if given else {}
    error, _ = attempt(script, tls_ca=str(cert), **own)
    assert (error is None) == given


def test_options_that_contradict_each_other() -> None:
    for options in ({"tls": "off", "tls_ca": "/a"}, {"tls": "off", "tls_cert": "/a"}, {"tls_key": "/a"}):
        with pytest.raises(ValueError, match="tls_"):
            ServerAddress.model_validate({"host": "h", "user": "u", **options})


@pytest.mark.parametrize(
    ("host", "tls", "encrypted"),
    [
        ("127.0.0.1", "", False), ("127.9.9.9", "", False), ("::1", "", False), ("localhost", "", False),
        ("127.0.0.1", "required", True), ("db.example.org", "", True), ("db.example.org", "off", False),
        ("127.1", "", True), ("localhost.example.org", "", True), ("10.0.0.1", "", True),
    ],
)  # fmt: skip
def test_where_tls_is_required(host: str, tls: str, encrypted: bool) -> None:
    assert ServerAddress.model_validate({"host": host, "user": "u", "tls": tls}).encrypted is encrypted


def test_a_driver_without_the_method_that_is_guarded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pymysql.connections.Connection, "_request_authentication")
    error, heard = attempt(any_one(lambda *_: False))
    assert isinstance(error, UsageError)
    assert "is not supported" in error.what
    assert heard == b""
