"""A connection that protects the password from other servers and from the network.

PyMySQL obeys the server: it sends the password in clear text for some plug-ins, and encrypts it with any key that the
server sends. Some versions continue without encryption if the server offers no TLS. This class refuses all three. It
also says which side did not trust the certificate of the other.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any, NoReturn

from pymysql import err
from pymysql.connections import Connection
from pymysql.constants import CLIENT

from loader.errors import UsageError
from loader.transport.server.address import ServerAddress
from loader.transport.server.driver import check_authentication

_REFUSED = re.compile(r"ALERT_(?:UNKNOWN_CA|(?:BAD_|UNSUPPORTED_)?CERTIFICATE\w*|DECRYPT_ERROR)\] (?P<why>[^(]+)")
"""What OpenSSL says if the server did not accept the certificate of the client."""
_ALERT_SECONDS = 1

_CHALLENGES = {"mysql_native_password", "client_ed25519", "caching_sha2_password", "sha256_password"}
"""Plug-ins that do not send the password itself. The last two may encrypt it with the key of the server."""


class GuardedConnection(Connection):  # type: ignore[misc]
    """A connection to `address`, with TLS if there is a context `tls`. Other arguments go to the driver.

    Raises:
        UsageError: while connecting, if the server requests more than the address allows.
    """

    def __init__(self, address: ServerAddress, tls: ssl.SSLContext | None, **options: Any) -> None:
        check_authentication()
        self._address = address
        self._own_key = _read_key(address)
        self._alert: str | None = None
        self._allowed = _Plugins(address, encrypted=tls is not None)
        super().__init__(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.secret(),
            ssl=tls,
            ssl_disabled=tls is None,
            auth_plugin_map=self._allowed,
            **options,
        )

    @property
    def server_public_key(self) -> bytes | None:
        """Return the key that encrypts the password without TLS."""
        return self._key

    @server_public_key.setter
    def server_public_key(self, sent: bytes | None) -> None:
        if sent and self._own_key and sent.split() != self._own_key.split():
            raise self._refused("the server sent a public key that differs from the configured one")
        if sent and not self._own_key and not self._address.on_loopback:
            raise self._refused("anybody in the network could have sent this key, and could then decrypt the password")
        self._key = self._own_key or sent

    def _request_authentication(self) -> None:
        if self.ssl and not self.server_capabilities & CLIENT.SSL:
            raise UsageError(
                "the server offers no TLS, which the source requires",
                why="nothing was sent to it",
                hint='set up TLS on the server (SHOW VARIABLES LIKE "ssl_%"), or write tls = "off" for this source',
                source=self._address,
            )
        self._allowed.check(str(self._auth_plugin_name or "mysql_native_password"))
        self._alert = ""
        try:
            super()._request_authentication()
        except ssl.SSLCertVerificationError as error:
            raise _distrusted(self._address, error.verify_message or str(error)) from error
        except (ssl.SSLError, err.OperationalError) as error:
            if found := _REFUSED.search(f"{error} {self._alert}"):
                raise _certificate_refused(self._address, found["why"].strip()) from error
            raise
        self._alert = None

    def _force_close(self) -> None:
        """Close the socket. During the login, first read why the server closed it, as it may with TLS 1.3."""
        if self._alert == "" and isinstance(self._sock, ssl.SSLSocket):
            try:
                self._sock.settimeout(_ALERT_SECONDS)
                self._sock.recv(1)
            except (OSError, ValueError) as error:
                self._alert = str(error)
        super()._force_close()

    def _refused(self, why: str) -> UsageError:
        return _refusal(self._address, why)


class _Plugins(dict[str, Any]):
    """The driver's map of plug-ins. Without TLS it refuses every plug-in except challenges."""

    def __init__(self, address: ServerAddress, *, encrypted: bool) -> None:
        super().__init__()
        self._address = address
        self._encrypted = encrypted

    def get(self, name: str | bytes, default: Any = None) -> Any:
        """See dict; the driver looks up names of both types."""
        plugin = name.decode("ascii", "replace") if isinstance(name, bytes) else name
        return default if self._allows(plugin) else lambda _: self.check(plugin)

    def __bool__(self) -> bool:
        return True  # the driver replaces an empty mapping

    def check(self, plugin: str) -> None:
        """Check a plug-in.

        Raises:
            UsageError: it is not allowed.
        """
        if not self._allows(plugin):
            self._refuse(plugin)

    def _allows(self, plugin: str) -> bool:
        return self._encrypted or plugin in _CHALLENGES

    def _refuse(self, plugin: str) -> NoReturn:
        raise _refusal(self._address, f"the server asks for {plugin}, which sends it in clear text or nearly so")


def _refusal(address: ServerAddress, why: str) -> UsageError:
    return UsageError(
        "the password is not sent to the server",
        why=f"{why}, and the connection has no TLS",
        hint="use TLS (tls_ca), or caching_sha2_password with server_public_key (public_key.pem of the server)",
        source=address,
    )


def _distrusted(address: ServerAddress, why: str) -> UsageError:
    return UsageError(
        "the certificate of the server is not trusted",
        why=why,
        hint="set tls_ca to the certificate of the server's authority (MySQL: ca.pem in its data folder); replace a"
        " certificate that has expired or names another host",
        source=address,
    )


def _certificate_refused(address: ServerAddress, why: str) -> UsageError:
    return UsageError(
        "the server refused the certificate of the loader" if address.tls_cert else "the server requires a certificate",
        why=f"its answer to the TLS handshake: {why}",
        hint="set tls_cert and tls_key to a valid certificate of an authority that the server trusts"
        ' (SHOW VARIABLES LIKE "ssl_ca"); its dates: openssl x509 -noout -dates -in FILE',
        source=address,
        **({"file": address.tls_cert} if address.tls_cert else {}),
    )


def _read_key(address: ServerAddress) -> bytes | None:
    if not address.server_public_key:
        return None
    try:
        return Path(address.server_public_key).read_bytes()
    except OSError as error:
        raise UsageError(
            "the server's public key cannot be read",
            why=str(error),
            hint="set server_public_key to a copy of public_key.pem in the data folder of the server",
            key=address.server_public_key,
        ) from error
