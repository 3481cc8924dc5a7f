"""The address of a server, with a reference to the password that opens it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from loader.secret import read_secret


class ServerAddress(BaseModel):
    """Where a MySQL or MariaDB server listens and as whom to log in.

    Attributes:
        password: a reference, never the secret: `env:NAME`, `file:/path`, `airflow:connection`; empty for none.
        tls_ca: PEM file of the authority that signed the server's certificate; empty connects without TLS.
        read_timeout_seconds: how long the server may say nothing while a statement runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    port: int = 3306
    user: str
    password: str = ""
    tls_ca: str = ""
    read_timeout_seconds: float = 600

    def secret(self) -> str:
        """The password itself; raises as read_secret does."""
        return read_secret(self.password)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"
