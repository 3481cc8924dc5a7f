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
)


def refusal(error: BaseException) -> UsageError | None:
    """Return the error to report if the exception or one of its causes is a refusal; None for any other failure."""
    found = list(causes(error))
    for rule in _RULES:
        if any(rule.fits(cause) for cause in found):
            text = next((cause.text for cause in found if cause.text), "")
            return UsageError(rule.what, why=text.strip().partition("\n")[0][:_TEXT], hint=rule.hint)
    return None
