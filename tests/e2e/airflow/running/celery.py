"""An Airflow with the Celery executor: its database is PostgreSQL, its queue is Redis, staging and warehouse are on S3.

Each queue is read by one worker, and consecutive tasks go to different queues.
"""

from __future__ import annotations

import random
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import psycopg2
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from infra.postgres import PASSWORD, create_database, run_postgres, sqlalchemy_uri
from infra.redis import start_redis
from infra.s3server import S3Server
from loader.jars.resolve import jars_folder
from tests.e2e.airflow.running.server import Airflow, running
from tests.e2e.loaded import Loaded
from tests.support.independent_rows import differing_rows

FIRST, SECOND = "first", "second"
"""The queues."""
CANARY = "hunter2-canary-of-celery"
"""The password of the source, which only a connection of Airflow has."""
_LOCK = Path(__file__).resolve().parents[3] / "jars.lock"
_POLICY = f"""
SECOND = {{"extract", "check_tables", "load_tables", "publish"}}

def task_policy(task):
    task.queue = "{SECOND}" if task.task_id in SECOND else "{FIRST}"
"""
_WAREHOUSE = """
type = "jdbc"
uri = "{uri}"
path = "s3a://{bucket}/warehouse"
properties = {{ "jdbc.user" = "postgres", "jdbc.schema-version" = "V1" }}
secrets = {{ "jdbc.password" = "env:LAKE_PASSWORD" }}
"""


@dataclass
class CelerySite:
    """Everything but the workers.

    Attributes:
        catalog: JDBC address of the catalog.
        bucket: of staging and warehouse.
        database: JDBC address of the metadata of Airflow and of the results of tasks.
        commands: what Redis was sent.
    """

    airflow: Airflow
    shop: Loaded
    s3: S3Server
    catalog: str
    bucket: str
    database: str
    commands: list[str] = field(default_factory=list)

    def table(self, name: str) -> Table:
        """Load a table of the warehouse by PyIceberg."""
        place = {"s3.endpoint": self.s3.endpoint, "s3.region": "us-east-1"}
        keys = {"s3.access-key-id": self.s3.access_key, "s3.secret-access-key": self.s3.secret_key}
        return load_catalog("lake", type="sql", uri=sqlalchemy_uri(self.catalog), **place, **keys).load_table(name)

    def differing_rows(self) -> dict[str, int]:
        """Count the rows that differ between the server and PyIceberg, by table."""
        return differing_rows(self.shop.server, "shop", self.table)

    def messages(self) -> list[bytes]:
        """The messages of the queue, as the executor sent them to the workers."""
        bodies = (found for one in self.commands for found in re.findall(r'"body\W+([A-Za-z0-9+/=]+)', one))
        return [b64decode(body) for body in bodies]

    def kept(self) -> Iterator[tuple[str, bytes]]:
        """Yield all that was written: the files of all hosts, the objects on S3, and the database, with their places."""
        for path in self.shop.home.parent.rglob("*"):
            if path.is_file() and not path.is_symlink() and not path.is_relative_to(self.shop.server.log_dir):
                yield str(path), path.read_bytes()
        client = self.s3_client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for one in page.get("Contents", ()):
                yield one["Key"], client.get_object(Bucket=self.bucket, Key=one["Key"])["Body"].read()
        with (
            psycopg2.connect(sqlalchemy_uri(self.database).replace("+psycopg2", "")) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            for (name,) in cursor.fetchall():
                cursor.execute(f'SELECT t::text FROM "{name}" t')
                yield name, "\n".join(row for (row,) in cursor.fetchall()).encode()

    def s3_client(self) -> Any:
        keys = {"aws_access_key_id": self.s3.access_key, "aws_secret_access_key": self.s3.secret_key}
        return boto3.client("s3", endpoint_url=self.s3.endpoint, region_name="us-east-1", **keys)

    def listen(self, broker: str) -> None:
        """Keep what Redis is sent, until it ends."""
        with suppress(RedisConnectionError), Redis.from_url(broker, socket_timeout=None).monitor() as monitor:
            self.commands += (str(one["command"]) for one in monitor.listen())


@contextmanager
def celery_site(shop: Loaded, s3: S3Server) -> Iterator[CelerySite]:
    """Configure a shop, and start Airflow without workers."""
    with run_postgres() as database, start_redis() as broker:
        catalog = create_database(database.uri, "lake")
        bucket = f"lake-{random.SystemRandom().randrange(10**12)}"
        _configure(shop, s3, catalog, bucket)
        airflow = Airflow(shop.home / "airflow", shop.config)
        airflow.keep_metadata_in(database.uri)
        airflow.env |= s3.environment | {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CELERY__BROKER_URL": broker,
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{sqlalchemy_uri(database.uri)}",
            "LAKE_PASSWORD": PASSWORD,
            "SPARK_DIST_CLASSPATH": f"{jars_folder(_LOCK)}/*",  # with the driver of PostgreSQL
        }
        airflow.env.pop("AWS_ENDPOINT_URL")  # of the configuration
        airflow.lose_tasks_soon()
        airflow.prepare()
        (airflow.home / "config").mkdir(exist_ok=True)
        (airflow.home / "config" / "airflow_local_settings.py").write_text(_POLICY, encoding="utf-8")
        site = CelerySite(airflow, shop, s3, catalog, bucket, database.uri)
        site.s3_client().create_bucket(Bucket=bucket)
        Thread(target=site.listen, args=(broker,), daemon=True).start()
        with running(airflow):
            airflow.add_connection("shop_db", conn_type="binlog_source", password=CANARY)
            yield site


def _configure(shop: Loaded, s3: S3Server, catalog: str, bucket: str) -> None:
    shop.execute(f"ALTER USER 'loader'@'%' IDENTIFIED BY '{CANARY}'")
    shop.configure(
        password="airflow:shop_db",
        staging=f'root = "s3://{bucket}/staging"\ns3 = {{ endpoint = "{s3.endpoint}" }}',
        warehouse=_WAREHOUSE.format(uri=catalog, bucket=bucket),
    )
