"""A private authority, the certificate of a server on this machine, and both in the forms that programs need."""

from __future__ import annotations

import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from loader.jars.resolve import java

_NEW = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]


@dataclass(frozen=True)
class Certificates:
    """Files.

    Attributes:
        authority: the certificate of the authority, as PEM.
        server: the key and the certificate of the server, as PEM.
        trust: a key store of Java that has the authority only.
    """

    authority: Path
    server: Path
    trust: Path

    @property
    def options(self) -> dict[str, str]:
        """The options of a MySQL or MariaDB server."""
        return {"ssl_ca": str(self.authority), "ssl_cert": str(self.server), "ssl_key": str(self.server)}


def make_certificates(folder: Path) -> Certificates:
    """Make an authority and the certificate of a server on 127.0.0.1, in a folder."""
    authority, authority_key = folder / "ca.pem", folder / "ca-key.pem"
    _run(*_NEW, "-keyout", authority_key, "-out", authority, "-subj", f"/CN=authority of {folder.name}")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ["-subj", "/CN=server of the tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    signer = ["-CA", authority, "-CAkey", authority_key, "-addext", "basicConstraints=CA:FALSE"]
    _run(*_NEW, "-keyout", key, "-out", certificate, *names, *signer)
    both, trust = folder / "server.pem", folder / "trust.jks"
    both.write_text(key.read_text() + certificate.read_text())
    # Of the old format, which Java reads without a password if it has certificates only.
    store = ["-keystore", trust, "-storetype", "JKS", "-storepass", "changeit"]
    keytool = Path(java()).with_name("keytool") if "/" in java() else "keytool"
    _run(keytool, "-importcert", "-noprompt", "-alias", "authority", "-file", authority, *store)
    return Certificates(authority, both, trust)


def client_certificate(folder: Path, *, days: int = 2) -> tuple[Path, Path]:
    """The certificate of a client, signed by the authority in a folder of `make_certificates`, and its key.

    Args:
        folder: of the authority.
        days: until the certificate expires; negative if it has expired.
    """
    authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    signer = serialization.load_pem_private_key((folder / "ca-key.pem").read_bytes(), None)
    assert isinstance(signer, rsa.RSAPrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loader")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(now + datetime.timedelta(days=days))
        .sign(signer, hashes.SHA256())
    )
    file, key_file = folder / f"client{days}.pem", folder / f"client{days}-key.pem"
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return file, key_file


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
