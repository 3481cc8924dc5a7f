"""A source whose account needs a certificate: every command, from the doctor to the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.servers import Kind, start_server
from loader.cli.demo.shop import create_shop
from tests.e2e.loaded import Loaded, assert_loaded_and_followed
from tests.support.certificates import client_certificate, make_certificates

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sweep,
]

TABLES = ("shop.orders", "shop.customers")


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_an_account_that_requires_x509(kind: Kind, tmp_path: Path, jars: str) -> None:
    files = make_certificates(tmp_path)
    good, expired = client_certificate(tmp_path), client_certificate(tmp_path, days=-1)
    with start_server(kind, tmp_path / "server", files.options) as server:
        source = Loaded(server, tmp_path / "loader", jars)
        source.configure()
        create_shop(source.address, 500)
        source.create_user()
        source.execute("ALTER USER 'loader'@'%' REQUIRE X509")
        own = f'tls_ca = "{files.authority}"\ntls_cert = "{{}}"\ntls_key = "{{}}"\nuser = "loader"'
        text = source.config.read_text().replace('"shop.*"', ", ".join(f'"{table}"' for table in TABLES))
        assert 'user = "loader"' in text

        source.config.write_text(text.replace('user = "loader"', own.format(*expired)))
        refused = source.json("initial-load", code=2)
        assert refused["what"] == "the server refused the certificate of the loader", refused
        source.config.write_text(text.replace('user = "loader"', own.format(*good)))
        findings = {one["name"]: one["severity"] for one in source.json("doctor")}
        assert (findings["tls"], findings["grants"]) == ("ok", "ok")
        assert_loaded_and_followed(source, TABLES)
