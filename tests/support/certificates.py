"""A private authority, the certificate of a server on this machine, and both in the forms that programs need."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

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


def make_certificates(folder: Path) -> Certificates:
    """Make an authority and the certificate of a server on 127.0.0.1, in a folder."""
    authority, authority_key = folder / "ca.pem", folder / "ca-key.pem"
    _run(*_NEW, "-keyout", authority_key, "-out", authority, "-subj", "/CN=authority of the tests")
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


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
