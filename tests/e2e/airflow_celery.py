"""An Airflow with the Celery executor: its database is PostgreSQL, its queue is Redis, staging and warehouse are on S3.

Each queue is read by one worker, and consecutive tasks go to different queues.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from infra.postgres import PASSWORD, create_database, run_postgres, sqlalchemy_uri
from infra.redis import start_redis
from infra.s3server import S3Server
from loader.jars.resolve import jars_folder
from tests.e2e.airflow_server import Airflow, running
from tests.e2e.loaded import Loaded
from tests.support.independent_rows import differing_rows

FIRST, SECOND = "first", "second"
"""The queues."""
_LOCK = Path(__file__).resolve().parents[1] / "jars.lock"
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
    """

    airflow: Airflow
    shop: Loaded
    s3: S3Server
    catalog: str

    def table(self, name: str) -> Table:
        """Load a table of the warehouse by PyIceberg."""
        place = {"s3.endpoint": self.s3.endpoint, "s3.region": "us-east-1"}
        keys = {"s3.access-key-id": self.s3.access_key, "s3.secret-access-key": self.s3.secret_key}
        return load_catalog("lake", type="sql", uri=sqlalchemy_uri(self.catalog), **place, **keys).load_table(name)

    def differing_rows(self) -> dict[str, int]:
        """Count the rows that differ between the server and PyIceberg, by table."""
        return differing_rows(self.shop.server, "shop", self.table)


@contextmanager
def celery_site(shop: Loaded, s3: S3Server) -> Iterator[CelerySite]:
    """Configure a shop, and start Airflow without workers."""
    with run_postgres() as database, start_redis() as broker:
        catalog = create_database(database.uri, "lake")
        _configure(shop, s3, catalog)
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
        with running(airflow):
            yield CelerySite(airflow, shop, s3, catalog)


def _configure(shop: Loaded, s3: S3Server, catalog: str) -> None:
    bucket = f"lake-{random.SystemRandom().randrange(10**12)}"
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=s3.endpoint, **keys).create_bucket(Bucket=bucket)
    shop.configure(
        staging=f'root = "s3://{bucket}/staging"\ns3 = {{ endpoint = "{s3.endpoint}" }}',
        warehouse=_WAREHOUSE.format(uri=catalog, bucket=bucket),
    )
