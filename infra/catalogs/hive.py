"""A Hive Metastore whose data is in a PostgreSQL.

with run_hive(folder, postgres) as metastore:
    spark.conf.set("spark.sql.catalog.lake.uri", metastore.uri)
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from infra.catalogs.process import PortProcess
from infra.hadoop.site import site_xml
from infra.hdfs import HdfsServer
from infra.kerberos import REALM, Kerberos
from infra.postgres import PASSWORD, execute
from infra.servers.errors import ServerError, tail
from infra.servers.process import HOST, free_port
from loader.jars.resolve import jars_folder, java

_INFRA = Path(__file__).resolve().parents[1]
_HIVE = _INFRA / "catalogs" / "hive.lock"
_HADOOP = _INFRA / "hadoop" / "jars.lock"
_DRIVERS = _INFRA.parent / "tests" / "jars.lock"
_SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_SCHEMA_TOOL = "org.apache.hadoop.hive.metastore.tools.MetastoreSchemaTool"
_JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dlog4j.configurationFile=metastore-log4j2.properties")
COLUMN_TYPES = "metastore.disallow.incompatible.col.type.changes"
"""The setting by which a metastore refuses another type at the place of a column, true by default."""
_PRINCIPAL = f"hive/{HOST}@{REALM}"
_LOGGING = """
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c: %m%n
"""


@dataclass(frozen=True)
class Secured:
    """A realm with an HDFS, in which a metastore authenticates its users and makes folders for them."""

    realm: Kerberos
    hdfs: HdfsServer


class HiveMetastore(PortProcess):
    """A metastore that can be killed, and started again on its port with its data; see `run_hive`.

    Attributes:
        port: its port.
        uri: its address for clients.
        database: the JDBC address of its database.
    """

    def __init__(
        self, folder: Path, postgres: str, name: str, settings: Mapping[str, str], secured: Secured | None = None
    ) -> None:
        self.port = free_port()
        self.uri = f"thrift://{HOST}:{self.port}"
        self.database = f"{postgres.rpartition('/')[0]}/{name}"
        home = _unpacked(folder)
        (folder / "conf").mkdir()
        (folder / "conf" / "metastore-log4j2.properties").write_text(_LOGGING)
        wanted = {**_settings(folder, self.database), **settings}
        options = [*_JVM]
        if secured:
            wanted |= _secure(str(secured.realm.keytab(_PRINCIPAL)))
            core = {"fs.defaultFS": secured.hdfs.address, **secured.hdfs.settings}
            (folder / "conf" / "core-site.xml").write_text(site_xml(core))
            options.append(secured.realm.java_option)
        (folder / "conf" / "metastore-site.xml").write_text(site_xml(wanted))
        jars = (home / "lib", jars_folder(_HIVE), jars_folder(_HADOOP), jars_folder(_DRIVERS))
        path = ":".join([str(folder / "conf"), *(f"{jar}/*" for jar in jars)])
        self._java = [java(), *options, "-cp", path]
        self._home = {"METASTORE_HOME": str(home)}
        command = [*self._java, _SERVER, "-p", str(self.port)]
        super().__init__("the Hive Metastore", command, self.port, folder / "log", self._home)

    def initialise(self) -> None:
        """Create the tables of the database.

        Raises:
            ServerError: they could not be created.
        """
        argv = [*self._java, _SCHEMA_TOOL, "-dbType", "postgres", "-initSchema"]
        done = subprocess.run(argv, env={**os.environ, **self._home}, check=False, capture_output=True, text=True)
        if done.returncode:
            raise ServerError(f"the database of the metastore could not be made:\n{tail(done.stdout + done.stderr)}")


@contextmanager
def run_hive(
    folder: Path,
    postgres: str,
    name: str = "metastore",
    settings: Mapping[str, str] = MappingProxyType({}),
    secured: Secured | None = None,
) -> Iterator[HiveMetastore]:
    """A metastore until the end of the block.

    Args:
        folder: an empty folder.
        postgres: the JDBC address of a server of `infra.postgres`.
        name: of its database, which is created.
        settings: settings of the metastore. They override the defaults and the settings that the loader needs.
        secured: its realm and file system; None without Kerberos.

    Raises:
        ServerError: it did not come up.
    """
    execute(postgres, f"CREATE DATABASE {name}")
    metastore = HiveMetastore(folder, postgres, name, settings, secured)
    metastore.initialise()
    try:
        metastore.start()
        yield metastore
    finally:
        metastore.kill()


def _unpacked(folder: Path) -> Path:
    (archive,) = jars_folder(_HIVE).glob("*.tar.gz")
    shutil.unpack_archive(archive, folder)
    (home,) = folder.glob("apache-hive-metastore-*")
    return home


def _settings(folder: Path, database: str) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": database,
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": "postgres",
        "javax.jdo.option.ConnectionPassword": PASSWORD,
        "metastore.thrift.bind.host": HOST,
        "metastore.warehouse.dir": f"file://{folder}/warehouse",
        COLUMN_TYPES: "false",
        # The defaults of these are classes of Hive itself, which the metastore alone does not have.
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    }


def _secure(keys: str) -> dict[str, str]:
    return {
        "metastore.sasl.enabled": "true",
        "metastore.kerberos.principal": _PRINCIPAL,
        "metastore.kerberos.keytab.file": keys,
    }
