"""The reader over an encrypted connection."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conftest import StartServer
from tests.integration.initial_load.loading import plan_of, read_chunks
from tests.integration.initial_load.source_server import SourceServer

pytestmark = pytest.mark.integration


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, of 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "source")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return folder / "cert.pem", folder / "key.pem"


def test_chunks_over_tls(fresh_server: StartServer, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = {"ssl_ca": str(cert), "ssl_cert": str(cert), "ssl_key": str(key), "require_secure_transport": "ON"}
    source = SourceServer(fresh_server("mysql", options), tls_ca=str(cert))
    rows = ", ".join(f"({n}, REPEAT('x', {n}))" for n in range(3000))
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", f"INSERT INTO t VALUES {rows}")
    assert source.run("SHOW STATUS LIKE 'Ssl_cipher'")[0][1]
    chunks = read_chunks(source, plan_of(source, tmp_path, "t", 700))
    assert [line for chunk in chunks for line in chunk] == [f'{n},"{"x" * n}"'.encode() for n in range(3000)]
