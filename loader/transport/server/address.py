"""The address of a server, with the user and a reference to the password."""

from __future__ import annotations

import ipaddress
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from loader.secret import read_secret


def check_tls(tls: str, ca: str, cert: str, key: str) -> None:
    """Check the options of TLS; see ServerAddress.

    Raises:
        ValueError: they contradict each other.
    """
    if tls == "off" and (ca or cert or key):
        raise ValueError('tls = "off" contradicts tls_ca, tls_cert and tls_key: remove one or the other')
    if key and not cert:
        raise ValueError("tls_key needs tls_cert, which is not set")


class ServerAddress(BaseModel):
    """Address of a MySQL or MariaDB server, and the user.

    Attributes:
        password: a reference, never the secret: `env:NAME`, `file:/path`, `airflow:connection`; empty for none.
        tls: `required` or `off`; empty requires TLS for every host except this machine, and if a file of TLS is set.
            The certificate of the server is always verified, with its host name.
        tls_ca: PEM file of the authority that signed the certificate of the server; empty for those of the machine.
        tls_cert: PEM file of the user's certificate, for a server that requires one.
        tls_key: PEM file of its key; empty if `tls_cert` holds both.
        server_public_key: PEM file of the server's RSA key, with which sha2 accounts encrypt the password without TLS.
        read_timeout_seconds: seconds that the server may be silent while a statement runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    port: int = 3306
    user: str
    password: str = ""
    tls: Literal["", "required", "off"] = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    server_public_key: str = ""
    read_timeout_seconds: float = 600

    @model_validator(mode="after")
    def _tls_fits(self) -> Self:
        check_tls(self.tls, self.tls_ca, self.tls_cert, self.tls_key)
        return self

    @property
    def on_loopback(self) -> bool:
        """Return whether the host is this machine, so that nobody can listen in between."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def encrypted(self) -> bool:
        """Return whether connections must use TLS."""
        return bool(self.tls != "off" and (self.tls or self.tls_ca or self.tls_cert or not self.on_loopback))

    def secret(self) -> str:
        """Return the password; see read_secret for errors."""
        return read_secret(self.password)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"
