"""The address of a server, with a reference to the password that opens it."""

from __future__ import annotations

import ipaddress
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from loader.secret import read_secret


def check_tls(tls: str, ca: str, cert: str, key: str) -> None:
    """Raise ValueError for options of TLS that contradict each other; see ServerAddress."""
    if tls == "off" and (ca or cert or key):
        raise ValueError('tls = "off" leaves tls_ca, tls_cert and tls_key unused: remove it, or them')
    if key and not cert:
        raise ValueError("tls_key is the key of a tls_cert, which is not given")


class ServerAddress(BaseModel):
    """Where a MySQL or MariaDB server listens and as whom to log in.

    Attributes:
        password: a reference, never the secret: `env:NAME`, `file:/path`, `airflow:connection`; empty for none.
        tls: `required` or `off`; empty requires TLS of every host but this machine, and where a file of TLS is named.
            The server's certificate is always verified, with its host name.
        tls_ca: PEM file of the authority that signed the server's certificate; empty for the machine's own ones.
        tls_cert: PEM file of the user's certificate, for a server that asks for one.
        tls_key: PEM file of its key; empty where `tls_cert` holds both.
        server_public_key: PEM file of the server's RSA key, by which sha2 accounts encrypt the password without TLS.
        read_timeout_seconds: how long the server may say nothing while a statement runs.
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
        """Whether the host is this machine, so that nobody listens in between."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS, and are refused without it."""
        return bool(self.tls != "off" and (self.tls or self.tls_ca or self.tls_cert or not self.on_loopback))

    def secret(self) -> str:
        """The password itself; raises as read_secret does."""
        return read_secret(self.password)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"
