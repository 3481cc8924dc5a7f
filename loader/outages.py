"""Classifies exceptions of Spark, Iceberg, JDBC, Hadoop and clients as outages or other failures.

An exception of the JVM is classified by its class, its base classes, and all its causes. A Python exception of a task
reaches the driver as the text of a traceback. Its class is read from that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from loader.errors import RetryableError

_DEPTH = 20  # causes; a chain can be circular
_TEXT = 2000


class Cause(NamedTuple):
    """One exception of a chain of causes.

    Attributes:
        kinds: names of its class and base classes, the class itself first.
        text: its message.
        state: the SQLSTATE of a database error.
        status: the HTTP status of a service error; 0 for none.
    """

    kinds: tuple[str, ...]
    text: str = ""
    state: str = ""
    status: int = 0


class _Rule(NamedTuple):
    what: str
    hint: str
    kinds: frozenset[str] = frozenset()
    states: tuple[str, ...] = ()
    statuses: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()

    def fits(self, cause: Cause) -> bool:
        return (
            not self.kinds.isdisjoint(cause.kinds)
            or (bool(self.states) and cause.state.startswith(self.states))
            or cause.status in self.statuses
            or any(word in cause.text for word in self.words)
        )


_AGAIN = "run again when the service is back; nothing is applied twice"
_SERVICES = {
    "org.apache.hadoop.fs.s3a.AWSServiceIOException",
    "software.amazon.awssdk.core.exception.SdkServiceException",
}
"""Classes of the JVM with an HTTP status."""
_SERVER_ERRORS = frozenset({429, *range(500, 600)})
_ENDED = _Rule(
    "Spark, or one of its processes, ended during the job",
    "read the log of the job; if memory was short, raise spark.driver.memory in [spark.conf]",
    frozenset({"org.apache.spark.shuffle.FetchFailedException", "py4j.protocol.Py4JNetworkError"}),
    # Spark has no class for the death of a task process, and none for an application that it stopped.
    words=(
        "Python worker exited unexpectedly",
        "ExecutorLostFailure",
        "stopped SparkContext",
        "SparkContext has been shutdown",
        "SparkContext was shut down",
    ),
)
# The first rule that matches any cause names the failure.
_RULES = (
    _Rule(
        "the catalog did not answer whether it committed",
        "run again; the next run reads from the catalog whether the commit succeeded",
        frozenset({"org.apache.iceberg.exceptions.CommitStateUnknownException"}),
    ),
    _Rule(
        "the database of the catalog does not answer",
        _AGAIN,
        frozenset(
            {
                "java.sql.SQLTransientException",
                "java.sql.SQLRecoverableException",
                "java.sql.SQLNonTransientConnectionException",
                "org.apache.iceberg.jdbc.UncheckedInterruptedException",
            }
        ),
        # Connection failed; deadlock or serialization failure; out of resources; shut down or starting.
        states=("08", "40", "53", "57P0"),
    ),
    _Rule(
        "the service of the catalog failed",
        _AGAIN,
        frozenset(
            {
                "org.apache.iceberg.exceptions.ServiceFailureException",
                "org.apache.iceberg.exceptions.ServiceUnavailableException",
            }
        ),
    ),
    _Rule(
        "the Hive Metastore does not answer",
        _AGAIN,
        frozenset({"org.apache.thrift.transport.TTransportException"}),
        # MetaException has no class for it, and names the exception of the transport only in its text.
        words=("Could not connect to meta store",),
    ),
    _Rule(
        "HDFS accepts no requests at the moment",
        _AGAIN,
        frozenset(
            {
                "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
                "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException",
                "org.apache.hadoop.hdfs.server.namenode.RetryStartFileException",
                "org.apache.hadoop.hdfs.BlockMissingException",
                "org.apache.hadoop.ipc.ObserverRetryOnActiveException",
                "org.apache.hadoop.ipc.RetriableException",
                "org.apache.hadoop.ipc.StandbyException",
            }
        ),
    ),
    _Rule(
        "the object store answers with server errors",
        _AGAIN,
        frozenset(
            {
                "org.apache.hadoop.fs.s3a.AWSApiCallTimeoutException",
                "org.apache.hadoop.fs.s3a.AWSNoResponseException",
                "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
                "org.apache.hadoop.fs.s3a.AWSStatus500Exception",
                "org.apache.hadoop.fs.s3a.HttpChannelEOFException",
                "software.amazon.awssdk.core.exception.ApiCallTimeoutException",
                "software.amazon.awssdk.core.exception.ApiCallAttemptTimeoutException",
                "botocore.exceptions.ConnectionError",
                "botocore.exceptions.HTTPClientError",
            }
        ),
        statuses=_SERVER_ERRORS,
    ),
    _ENDED,
    _Rule(
        "the catalog does not answer, or somebody dropped a table during the run",
        _AGAIN,
        # Iceberg's catalog for Spark treats a table whose metadata cannot be read like a missing table.
        words=("[TABLE_OR_VIEW_NOT_FOUND]",),
    ),
    _Rule(
        "a server does not answer, or a connection to it broke",
        _AGAIN,
        frozenset(
            {
                "java.net.SocketException",  # also ConnectException and NoRouteToHostException
                "java.net.SocketTimeoutException",
                "java.net.UnknownHostException",
                "java.net.http.HttpTimeoutException",
                "java.nio.channels.ClosedChannelException",
                "org.apache.iceberg.shaded.org.apache.hc.core5.http.ConnectionClosedException",
                "org.apache.iceberg.shaded.org.apache.hc.core5.http.NoHttpResponseException",
                "builtins.ConnectionError",
                "builtins.TimeoutError",
                "socket.gaierror",
                "requests.exceptions.ConnectionError",
                "requests.exceptions.Timeout",
                "urllib3.exceptions.ProtocolError",
                "urllib3.exceptions.TimeoutError",
            }
        ),
    ),
)
_IN_TRACEBACK = re.compile(r"^(?:Caused by: )?((?:\w+\.)*\w*(?:Error|Exception|Timeout|gaierror))(?::|$)", re.MULTILINE)
_BUILTIN = {
    "ConnectionError": "builtins.ConnectionError",
    "ConnectionAbortedError": "builtins.ConnectionError",
    "ConnectionRefusedError": "builtins.ConnectionError",
    "ConnectionResetError": "builtins.ConnectionError",
    "BrokenPipeError": "builtins.ConnectionError",
    "TimeoutError": "builtins.TimeoutError",
    "botocore.exceptions.EndpointConnectionError": "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.ConnectTimeoutError": "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.ReadTimeoutError": "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.ConnectionClosedError": "botocore.exceptions.HTTPClientError",
}
"""The rules' class for each class that is known from a traceback by its name alone."""


def outage(error: BaseException) -> RetryableError | None:
    """Return the error to report if a server or a process of Spark failed; None for any other failure."""
    return judged(list(causes(error)))


def judged(found: list[Cause]) -> RetryableError | None:
    """Return the error for a chain of causes, the outermost first; see `outage`."""
    for rule in _RULES:
        for cause in found:
            if rule.fits(cause):
                why = f"{cause.kinds[0].rpartition('.')[2]}: {cause.text.strip()[:_TEXT]}"
                return RetryableError(rule.what, why=why, hint=rule.hint)
    return None


def ended_application(error: BaseException) -> RetryableError:
    """Return the error to report for any failure in an application that Spark has stopped."""
    return RetryableError(_ENDED.what, why=f"{type(error).__name__}: {str(error).strip()[:_TEXT]}", hint=_ENDED.hint)


def causes(error: BaseException | None) -> Iterator[Cause]:
    """Yield the exception and its causes, of Python and of the JVM, the outermost first."""
    for _ in range(_DEPTH):
        if error is None:
            return
        yield _of_python(error)
        java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        if java is not None:
            try:
                yield from _of_java(java)
            except Exception as gone:  # the JVM itself failed, so that it cannot be asked
                yield _of_python(gone)
        error = error.__cause__


def _of_python(error: BaseException) -> Cause:
    response = getattr(error, "response", None)  # of botocore's ClientError
    metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    kinds = tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    # The text of an exception of the JVM contains all its causes, which are checked separately.
    text = "" if hasattr(error, "_origin") or hasattr(error, "java_exception") else str(error)
    return Cause(kinds, text, status=int(metadata.get("HTTPStatusCode", 0)))


def _of_java(throwable: Any) -> Iterator[Cause]:
    for _ in range(_DEPTH):
        if throwable is None:
            return
        kinds, text = _kinds(throwable.getClass()), str(throwable.getMessage() or "")
        if "org.apache.hadoop.ipc.RemoteException" in kinds:
            kinds = (str(throwable.getClassName()), *kinds)
        if "org.apache.spark.api.python.PythonException" in kinds:
            kinds = (*kinds, *(_BUILTIN.get(name, name) for name in _IN_TRACEBACK.findall(text)))
        yield Cause(kinds, text, _state(throwable, kinds), _status(throwable, kinds))
        if "java.sql.SQLException" in kinds and (following := throwable.getNextException()) is not None:
            yield Cause(_kinds(following.getClass()), str(following.getMessage()), str(following.getSQLState() or ""))
        throwable = throwable.getCause()


def _kinds(java_class: Any) -> tuple[str, ...]:
    names = []
    while java_class is not None:
        names.append(str(java_class.getName()))
        java_class = java_class.getSuperclass()
    return tuple(names)


def _state(throwable: Any, kinds: tuple[str, ...]) -> str:
    return str(throwable.getSQLState() or "") if "java.sql.SQLException" in kinds else ""


def _status(throwable: Any, kinds: tuple[str, ...]) -> int:
    return int(throwable.statusCode()) if not _SERVICES.isdisjoint(kinds) else 0
