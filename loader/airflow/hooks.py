"""The connection type of a source's password."""

from __future__ import annotations

from airflow.sdk import BaseHook

from loader.errors import LoaderError
from loader.settings import SourceSettings

_KIND = "airflow:"


class SourceHook(BaseHook):
    """A connection with the password of a source's user. The configuration refers to it as `airflow:<connection>`.

    The configuration has server, port and user, so that jobs work in the same way without Airflow.
    """

    conn_name_attr = "source_conn_id"
    default_conn_name = "mysql_source_default"
    conn_type = "mysql_source"
    hook_name = "binlog-loader source"

    def __init__(self, source_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.source_conn_id = source_conn_id

    def get_conn(self) -> str:
        """Return the password."""
        return self.get_connection(self.source_conn_id).password or ""

    def test_connection(self) -> tuple[bool, str]:
        """Log in to the sources that have their password in this connection. Return whether one answered, and a text.

        Airflow's form tests a copy of the connection with another id. Then all sources with a password in Airflow are
        tried.
        """
        try:
            from loader.config import load_config

            config = load_config()
            sources = [config.source(name) for name in config.sources]
        except LoaderError as error:
            return False, str(error)
        every = [one for one in sources if one.server.password.startswith(_KIND)]
        named = [one for one in every if one.server.password == f"{_KIND}{self.source_conn_id}"]
        if not every:
            return False, f'no source of the configuration has password = "{_KIND}..."'
        answers = [_login(one, self.get_conn()) for one in named or every]
        return any(success for success, _ in answers), "; ".join(text for _, text in answers)


def _login(settings: SourceSettings, password: str) -> tuple[bool, str]:
    # Imported here: Airflow loads hooks in processes that need no driver.
    from loader.airflow.connections import lent
    from loader.pipeline.chain.chain_begin import check_server
    from loader.secret import secret_variable

    with lent({secret_variable(settings.server.password.removeprefix(_KIND)): password}):
        try:
            identity, end = check_server(settings)
        except LoaderError as error:
            return False, f"{settings.name}: {error}"
    return True, f"{settings.name}: {identity.kind} {identity.version} at {settings.server}, log up to {end}"
