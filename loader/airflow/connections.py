"""What the loader takes from Airflow's connections: where Spark runs, and secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from airflow.providers.apache.spark.hooks import spark_submit
from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from loader.errors import UsageError
from loader.secret import secret_variable
from loader.spark.submit import SparkSettings

_EXAMPLE = '{"conn_type": "spark", "host": "local[*]"}'


def spark_settings(settings: SparkSettings, connection_id: str) -> SparkSettings:
    """The settings with the master that the connection names.

    Raises:
        UsageError: no such connection, or none of Spark, or one whose driver would run elsewhere. The provider would
            take the first two for YARN; in the last case a job's result would stay on another machine.
    """
    connection = _connection(connection_id, f"add it as JSON: {_EXAMPLE}")
    if connection.conn_type != "spark" or not connection.host:
        raise UsageError(
            "the Airflow connection names no Spark master",
            why=f"its type is {connection.conn_type!r} and its host {connection.host!r}",
            hint=f"write it as JSON, with the whole master as the host: {_EXAMPLE}",
            connection=connection_id,
        )
    if connection.extra_dejson.get("deploy-mode") == "cluster":
        raise UsageError(
            "the Airflow connection asks for deploy mode cluster",
            why="the driver would run on another machine, and so would its result",
            hint='set "deploy-mode": "client" in its extra',
            connection=connection_id,
        )
    master = _master(connection)
    if master.startswith("k8s://") and not hasattr(spark_submit, "kube_client"):
        raise UsageError(
            "the Airflow connection names Kubernetes, whose provider is not installed",
            hint="pip install apache-airflow-providers-cncf-kubernetes",
            connection=connection_id,
        )
    return settings.model_copy(update={"master": master})


def _master(connection: Connection) -> str:
    """The master as the provider's hook reads it, which takes a bare host with a port for a standalone cluster."""
    host = str(connection.host)
    if not connection.port:
        return host
    return f"{host if '://' in host else f'spark://{host}'}:{connection.port}"


@contextmanager
def secret(reference: str) -> Iterator[None]:
    """While the block runs, the secret of a reference `airflow:connection` is in this process's environment.

    That is where the loader looks for it, here and in the jobs that inherit the environment: it is never an argument,
    a template or a log line. Other references are left to the loader.

    Raises:
        UsageError: there is no such connection.
    """
    kind, _, connection_id = reference.partition(":")
    if kind != "airflow":
        yield
        return
    password = _connection(connection_id, "add it, or change the reference to it").password or ""
    with lent({secret_variable(connection_id): password}):
        yield


@contextmanager
def lent(variables: Mapping[str, str]) -> Iterator[None]:
    """While the block runs, these variables are in this process's environment, which its children inherit."""
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
            "there is no such Airflow connection, or it cannot be parsed", hint=hint, connection=connection_id
        ) from error
