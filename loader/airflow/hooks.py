"""The connection type of a source."""

from __future__ import annotations

from airflow.sdk import BaseHook

from loader.errors import LoaderError, UsageError
from loader.settings import SourceSettings
from loader.transport.server.address import ServerAddress

_KIND = "airflow:"


class SourceHook(BaseHook):
    """A connection with the server of a source: host, port, user, password, and the files of TLS in its extra.

    The configuration refers to it as `server = "airflow:<connection>"`. With `password = "airflow:<connection>"` it
    takes only the password from it.
    """

    conn_name_attr = "source_conn_id"
    default_conn_name = "binlog_source_default"
    conn_type = "binlog_source"
    hook_name = "binlog-loader source"

    def __init__(self, source_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.source_conn_id = source_conn_id

    def get_conn(self) -> ServerAddress:
        """Return the address of the server. It has a reference to the password, which is not in it."""
        from loader.airflow.connections import server_of

        return server_of(f"{_KIND}{self.source_conn_id}")

    def test_connection(self) -> tuple[bool, str]:
        """Log in to the server. Return whether it answered, and a text.

        A connection without a host only has a password. Then the sources of the configuration that have their password
        in it are tried. Airflow's form tests a copy of the connection with another id, so it tries all such sources.
        """
        connection = self.get_connection(self.source_conn_id)
        try:
            servers = [("", self.get_conn())] if connection.host else self._configured()
        except LoaderError as error:
            return False, str(error)
        answers = [_login(name, server, connection.password or "") for name, server in servers]
        return any(success for success, _ in answers), "; ".join(text for _, text in answers)

    def _configured(self) -> list[tuple[str, ServerAddress]]:
        """Return names and servers of the sources that have a password in this connection, else in any.

        Raises:
            LoaderError: no source has its password in a connection, or the configuration is wrong.
        """
        from loader.config.file import load_config

        config = load_config()
        every = [config.source(name) for name, one in config.sources.items() if one.password.startswith(_KIND)]
        named = [one for one in every if one.server.password == f"{_KIND}{self.source_conn_id}"]
        if not every:
            raise UsageError(
                "the connection has no host",
                why=f'no source of the configuration has password = "{_KIND}..."',
                hint="fill in host, port, user and password",
            )
        return [_named(one) for one in named or every]


def _named(settings: SourceSettings) -> tuple[str, ServerAddress]:
    return f"{settings.name}: ", settings.server


def _login(name: str, server: ServerAddress, password: str) -> tuple[bool, str]:
    # Imported here: Airflow loads hooks in processes that need no driver.
    from loader.airflow.connections import lent
    from loader.pipeline.chain.chain_begin import check_address
    from loader.secret import secret_variable

    with lent({secret_variable(server.password.removeprefix(_KIND)): password}):
        try:
            identity, end = check_address(server)
        except LoaderError as error:
            return False, f"{name}{error}"
    return True, f"{name}{identity.kind} {identity.version} at {server}, log up to {end}"
