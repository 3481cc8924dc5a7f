"""Values from Airflow connections: the Spark master, the servers of sources, and secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from airflow.providers.apache.spark.hooks import spark_submit
from airflow.sdk import BaseHook, Connection
from pydantic import ValidationError

from loader.airflow.versions import AirflowNotFoundException
from loader.config.values import check_host, check_user
from loader.errors import UsageError
from loader.secret import keep_secrets, secret_variable
from loader.settings import SourceSettings
from loader.spark.settings import DEPLOY_MODE, SparkSettings
from loader.transport.server.address import ServerAddress

_EXAMPLE = '{"conn_type": "spark", "host": "local[*]"}'


def spark_settings(settings: SparkSettings, connection_id: str) -> SparkSettings:
    """Return the settings with the master of the connection, and with its deploy mode if it names one.

    Raises:
        UsageError: the connection does not exist, or is no Spark connection. The provider would use YARN. Or it needs a
            provider that is not installed.
    """
    connection = _connection(connection_id, f"add it as JSON: {_EXAMPLE}")
    if connection.conn_type != "spark" or not connection.host:
        raise UsageError(
            "the Airflow connection has no Spark master",
            why=f"its type is {connection.conn_type!r} and its host {connection.host!r}",
            hint=f"write it as JSON, with the whole master as the host: {_EXAMPLE}",
            connection=connection_id,
        )
    master = _master(connection)
    if master.startswith("k8s://") and not hasattr(spark_submit, "kube_client"):
        raise UsageError(
            "the Airflow connection needs the Kubernetes provider, which is not installed",
            hint="pip install apache-airflow-providers-cncf-kubernetes",
            connection=connection_id,
        )
    mode = connection.extra_dejson.get("deploy-mode")
    conf = settings.conf | ({DEPLOY_MODE: mode} if mode else {})
    return settings.model_copy(update={"master": master, "conf": conf})


def _master(connection: Connection) -> str:
    """Return the master as the provider's hook reads it: a host with a port means a standalone cluster."""
    host = str(connection.host)
    if not connection.port:
        return host
    return f"{host if '://' in host else f'spark://{host}'}:{connection.port}"


def server_of(reference: str) -> ServerAddress:
    """Return the server that a reference `airflow:connection` names. Its password stays a reference.

    Raises:
        UsageError: the connection does not exist, has no host or user, or its extra contradicts itself.
    """
    connection_id = reference.partition(":")[2]
    connection = _connection(connection_id, "add it with the type binlog_source, or change server of the source")
    extra = connection.extra_dejson
    tls = {name: extra.get(name) or "" for name in ("tls", "tls_ca", "tls_cert", "tls_key", "server_public_key")}
    try:
        return ServerAddress(
            host=check_host(connection.host or ""),
            port=connection.port or 3306,
            user=check_user(connection.login or ""),
            password=reference if connection.password else "",
            **tls,
        )
    except ValueError as error:
        raise UsageError(
            "the Airflow connection has no valid server",
            why=_reasons(error),
            hint="correct it in Airflow: Admin, Connections",
            connection=connection_id,
        ) from None


def _reasons(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(": ".join((*map(str, one["loc"]), one["msg"])) for one in error.errors(include_input=False))


@contextmanager
def secret(reference: str) -> Iterator[None]:
    """Put the secret of a reference `airflow:connection` into the environment of this process for the block.

    The loader reads it there, in this process and in jobs that inherit the environment. So it is never an argument, a
    template or a log line. The loader resolves other references itself.

    Raises:
        UsageError: the connection does not exist.
    """
    kind, _, connection_id = reference.partition(":")
    if kind != "airflow":
        yield
        return
    password = _connection(connection_id, "add it, or change the reference").password or ""
    with lent({secret_variable(connection_id): password}):
        yield


def keep_password(settings: SourceSettings) -> None:
    """Keep the password of the source's server in this process, if an Airflow connection has it.

    It is not put into the environment: threads of a server read several sources at the same time.

    Raises:
        UsageError: the connection does not exist.
    """
    reference = settings.server.password
    kind, _, connection_id = reference.partition(":")
    if kind == "airflow":
        keep_secrets({reference: _connection(connection_id, "add it, or change the reference").password or ""})


@contextmanager
def secrets_of(settings: SourceSettings) -> Iterator[None]:
    """Put the secrets of the source's server and of the catalog into the environment of this process for the block.

    Raises:
        UsageError: a connection does not exist.
    """
    with ExitStack() as secrets:
        for reference in {settings.server.password, *settings.catalog.secrets.values()}:
            secrets.enter_context(secret(reference))
        yield


@contextmanager
def lent(variables: Mapping[str, str]) -> Iterator[None]:
    """Put variables into the environment of this process, which its children inherit, for the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _connection(connection_id: str, hint: str) -> Connection:
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException as error:
        raise UsageError(
            "the Airflow connection does not exist, or cannot be parsed", hint=hint, connection=connection_id
        ) from error
