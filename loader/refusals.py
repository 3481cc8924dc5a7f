"""Classifies exceptions of the JVM as refusals: a server or this machine is set up wrong, so that no retry helps."""

from __future__ import annotations

from typing import NamedTuple

from loader.errors import UsageError
from loader.outages import Cause, causes

_TEXT = 1000


class _Rule(NamedTuple):
    what: str
    hint: str
    kinds: frozenset[str]
    words: tuple[str, ...] = ()

    def fits(self, cause: Cause) -> bool:
        return not self.kinds.isdisjoint(cause.kinds) or any(word in cause.text for word in self.words)


_RULES = (
    _Rule(
        "Java does not trust the certificate of a server",
        "for S3 set staging.s3.tls_ca; for other servers name a trust store with their authority in [spark.conf]:"
        " -Djavax.net.ssl.trustStore=FILE in spark.driver.extraJavaOptions and spark.executor.extraJavaOptions",
        frozenset({"java.security.cert.CertificateException", "javax.net.ssl.SSLPeerUnverifiedException"}),
        ("PKIX path ", "the trustAnchors parameter must be non-empty"),
    ),
    _Rule(
        "Hadoop's client does not use Kerberos, which HDFS asks for",
        "name the folder with core-site.xml and hdfs-site.xml of the cluster where this runs:"
        " export HADOOP_CONF_DIR=/etc/hadoop/conf",
        frozenset(),
        ("SIMPLE authentication is not enabled",),
    ),
    _Rule(
        "Java has no valid Kerberos ticket for HDFS",
        "log in: kinit USER@REALM; or set spark.kerberos.keytab and spark.kerberos.principal in [spark.conf];"
        " executors get tokens of HDFS from YARN and Kubernetes only",
        frozenset({"org.apache.hadoop.security.KerberosAuthException"}),
        ("Client cannot authenticate via:[TOKEN, KERBEROS]", "Failed to find any Kerberos tgt"),
    ),
)


def refusal(error: BaseException) -> UsageError | None:
    """Return the error to report if the exception or one of its causes is a refusal; None for any other failure."""
    found = list(causes(error))
    for rule in _RULES:
        if any(rule.fits(cause) for cause in found):
            text = next((cause.text for cause in found if cause.text), "")
            return UsageError(rule.what, why=text.strip().partition("\n")[0][:_TEXT], hint=rule.hint)
    return None
