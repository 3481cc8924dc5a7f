"""A REST catalog with OAuth2 over TLS with a private authority: from the initial load to the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from infra.catalogs.rest import run_rest
from infra.servers import start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.changes import changes
from tests.e2e.loaded import NOTHING_DIFFERS, Loaded
from tests.support.certificates import make_certificates

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

CREDENTIAL = "loader:secret-of-the-loader"
WAREHOUSE = """
type = "rest"
uri = "{uri}"
path = "lake"
properties = {{ "io-impl" = "org.apache.iceberg.hadoop.HadoopFileIO", "oauth2-server-uri" = "{uri}/v1/oauth/tokens" }}
secrets = {{ credential = "env:CATALOG_CREDENTIAL" }}
"""


def test_a_rest_catalog_with_oauth2_over_tls(tmp_path: Path, jars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("tls", "rest"):
        (tmp_path / folder).mkdir()
    tls = make_certificates(tmp_path / "tls")
    tables = f"file://{tmp_path}/tables"
    with (
        start_server("mysql", tmp_path / "server") as server,
        run_rest(tmp_path / "rest", tables, CREDENTIAL, tls.server) as catalog,
    ):
        source = Loaded(server, tmp_path / "loader", jars)
        source.configure(warehouse=WAREHOUSE.format(uri=catalog.uri))
        option = "-XX:TieredStopAtLevel=1"
        trusting = source.config.read_text().replace(option, f"{option} -Djavax.net.ssl.trustStore={tls.trust}")
        assert "trustStore" in trusting
        source.config.write_text(trusting)
        create_shop(source.address, 300)
        source.create_user()

        wrong = source.loader("--json", "doctor", CATALOG_CREDENTIAL="loader:wrong")
        assert (wrong.returncode, "unknown client" in wrong.stdout) == (1, True), wrong.stdout
        monkeypatch.setenv("CATALOG_CREDENTIAL", CREDENTIAL)
        assert {table["status"] for table in source.json("initial-load")["tables"]} == {"applied"}
        source.execute(*changes(1))
        done = source.loader("--verbose", "--json", "run")
        assert done.returncode == 0, done.stderr
        assert CREDENTIAL.partition(":")[2] not in done.stdout + done.stderr
        assert source.differences() == NOTHING_DIFFERS

        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tls.authority))
        client = {"credential": CREDENTIAL, "oauth2-server-uri": f"{catalog.uri}/v1/oauth/tokens"}
        outside = load_catalog("outside", type="rest", uri=catalog.uri, warehouse="lake", **client)
        assert {".".join(name) for name in outside.list_tables("shop")} == set(NOTHING_DIFFERS)
        for name in NOTHING_DIFFERS:
            assert outside.load_table(name).location() == f"{tables}/lake/{name.replace('.', '/')}"
