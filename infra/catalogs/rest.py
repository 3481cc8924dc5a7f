"""A REST catalog whose data is in a SQLite file: Iceberg's own handlers of requests, behind HTTP.

with run_rest(folder) as catalog:
    spark.conf.set("spark.sql.catalog.lake.uri", catalog.uri)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.catalogs.process import PortProcess
from infra.servers.process import HOST, free_port
from loader.jars.resolve import jars_folder, spark_jars

_INFRA = Path(__file__).resolve().parents[1]
_DRIVERS = _INFRA.parent / "tests" / "jars.lock"


class RestCatalog(PortProcess):
    """A catalog that can be killed, and started again on its port with its data.

    Attributes:
        port: its port.
        uri: its address for clients.
    """

    def __init__(self, folder: Path, warehouse: str, credential: str = "", certificate: Path | None = None) -> None:
        self.port = free_port()
        self.uri = f"{'https' if certificate else 'http'}://{HOST}:{self.port}"
        argv = [sys.executable, "-m", "infra.catalogs.rest_server", "--port", str(self.port)]
        argv += ["--database", str(folder / "catalog.db"), "--warehouse", warehouse]
        argv += ["--jars", f"{spark_jars()}/*:{jars_folder(_DRIVERS)}/*"]
        argv += ["--credential", credential] if credential else []
        argv += ["--certificate", str(certificate)] if certificate else []
        super().__init__("the REST catalog", argv, self.port, folder / "log", {"PYTHONPATH": str(_INFRA.parent)})


@contextmanager
def run_rest(
    folder: Path,
    warehouse: str = "",
    credential: str = "",
    certificate: Path | None = None,
) -> Iterator[RestCatalog]:
    """A catalog until the end of the block.

    Args:
        folder: an empty folder, which has the tables too unless `warehouse` is given.
        warehouse: the location of the tables.
        credential: `client:secret` of the only client, who gets a token for it; empty if everybody may do everything.
        certificate: a PEM file with the key and the certificate of the server; None for HTTP.

    Raises:
        ServerError: it did not come up.
    """
    catalog = RestCatalog(folder, warehouse or f"file://{folder}/warehouse", credential, certificate)
    try:
        catalog.start()
        yield catalog
    finally:
        catalog.kill()
