"""Trust stores for the JVMs of Spark: the authorities of a Java, and those of a PEM file.

Java has no format for PEM files of authorities. The old format of key stores (JKS) needs no password if it has only
certificates, and every supported Java reads it. Its layout: sun.security.provider.JavaKeyStore.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import ssl
import struct
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from loader.errors import UsageError
from loader.private_files import private_folder
from loader.resources import cache_folder

FILES = "spark.files"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_PASSWORD = "changeit"  # noqa: S105 - of Java's own authorities; it protects nothing
_WHITENER = b"Mighty Aphrodite"
_PROPERTY = "-Djavax.net.ssl.trustStore="


def trusting_conf(
    pem: str, java: Path | None, own: Mapping[str, str], *, local: bool, driver_elsewhere: bool = False
) -> dict[str, str]:
    """Return the properties of Spark with which its JVMs also trust the authorities of a PEM file.

    Executors, and a driver on another machine, get the trust store by `spark.files`, in their working folder. Options
    in `extraJavaOptions` come later on the command line, so a trust store that is named there replaces this one.

    Args:
        pem: path of the file.
        java: program that the driver runs with.
        own: settings of Spark from the configuration.
        local: whether driver and executors are one process.
        driver_elsewhere: whether the driver runs on a machine of the cluster.

    Raises:
        UsageError: a file cannot be read.
    """
    store = trust_store(Path(pem), java)
    conf = {"spark.driver.defaultJavaOptions": f"{_PROPERTY}{store.name if driver_elsewhere else store}"}
    if local:
        return conf
    files = ",".join(filter(None, (str(store), own.get(FILES))))
    return conf | {"spark.executor.defaultJavaOptions": f"{_PROPERTY}{store.name}", FILES: files}


def trust_store(pem: Path, java: Path | None) -> Path:
    """Return a trust store in the cache, made once for these authorities and this Java.

    Raises:
        UsageError: a file cannot be read.
    """
    try:
        text = pem.read_bytes()
        ders = [ssl.PEM_cert_to_DER_cert(found.decode()) for found in _CERTIFICATE.findall(text)]
    except (OSError, ValueError, binascii.Error) as error:
        raise _unreadable(pem, str(error)) from error
    if not ders:
        raise _unreadable(pem, "it has no certificate")
    public = _authorities_of(java)
    digest = hashlib.sha256(text + b"\0" + (public.read_bytes() if public else b"")).hexdigest()
    store = cache_folder() / "tls" / f"{digest[:16]}.jks"
    if not store.exists():
        private_folder(store.parent)
        unfinished = store.with_suffix(f".{uuid.uuid4().hex}")
        try:
            unfinished.write_bytes(key_store(ders))
            if java and public:
                _add(unfinished, public, java)
            unfinished.replace(store)
        finally:
            unfinished.unlink(missing_ok=True)
    return store


def key_store(certificates: list[bytes]) -> bytes:
    """Return a JKS key store with trusted certificates, given as DER."""
    data = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, der in enumerate(certificates):
        data += struct.pack(">I", _TRUSTED) + _utf(f"loader-{number}") + struct.pack(">Q", 0)
        data += _utf("X.509") + struct.pack(">I", len(der)) + der
    # The digest of the format, which protects nothing: everybody knows the password.
    return data + hashlib.sha1(_PASSWORD.encode("utf-16-be") + _WHITENER + data, usedforsecurity=False).digest()


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _authorities_of(java: Path | None) -> Path | None:
    """Return the file of the authorities that a Java trusts, as JSSE chooses it."""
    if java is None:
        return None
    folder = java.resolve().parents[1] / "lib" / "security"
    return next((found for name in ("jssecacerts", "cacerts") if (found := folder / name).exists()), None)


def _add(store: Path, public: Path, java: Path) -> None:
    argv = [str(java.resolve().with_name("keytool")), "-importkeystore", "-noprompt"]
    argv += ["-srckeystore", str(public), "-srcstorepass", _PASSWORD]
    argv += ["-destkeystore", str(store), "-deststoretype", "JKS", "-deststorepass", _PASSWORD]
    try:
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        said = "" if done.returncode == 0 else (done.stdout + done.stderr).strip()
    except OSError as error:
        said = str(error)
    if said:
        raise UsageError(
            "the authorities that Java trusts cannot be read",
            why=said,
            hint=f"check the installation of Java: keytool -list -storepass {_PASSWORD} -keystore {public}",
            file=public,
        )


def _unreadable(pem: Path, why: str) -> UsageError:
    hint = "set staging.s3.tls_ca (or AWS_CA_BUNDLE) to a PEM file with the certificate of the authority"
    return UsageError("the TLS authorities of S3 cannot be read", why=why, hint=hint, file=pem)
