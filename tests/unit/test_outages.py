"""Which exceptions are an outage: by class, cause and state. The JVM's own are in tests/integration/materialise."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError
from requests.exceptions import ConnectionError as RequestsConnectionError

from loader.errors import RetryableError, StagedDataError
from loader.outages import Cause, judged, outage
from loader.retries import Retries

SQL = ("org.postgresql.util.PSQLException", "java.sql.SQLException", "java.lang.Exception")


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        TimeoutError("timed out"),
        EndpointConnectionError(endpoint_url="http://x"),
        ConnectTimeoutError(endpoint_url="http://x"),
        ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 503}}, "GetObject"),
        RequestsConnectionError("no route"),
        RuntimeError("ExecutorLostFailure (executor 1 exited)"),
        caused(ValueError("x"), BrokenPipeError("gone")),
    ],
)
def test_an_outage_of_python(error: Exception) -> None:
    assert isinstance(outage(error), RetryableError)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        FileNotFoundError("x"),
        ValueError("Connection refused"),
        ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "GetObject"),
    ],
)
def test_no_outage_of_python(error: Exception) -> None:
    assert outage(error) is None


@pytest.mark.parametrize(("state", "known"), [("08006", True), ("57P01", True), ("53300", True), ("28P01", False)])
def test_a_database_is_judged_by_its_state(state: str, known: bool) -> None:
    chain = [Cause(("org.apache.iceberg.jdbc.UncheckedSQLException",), "Unknown failure"), Cause(SQL, "why", state)]
    found = judged(chain)
    assert (found is not None) is known
    if found:
        assert (found.what, found.why) == ("the database of the catalog does not answer", "PSQLException: why")


def test_an_unknown_state_of_a_commit_counts_for_more_than_its_cause() -> None:
    refused = Cause(("java.net.ConnectException", "java.net.SocketException"), "refused")
    unknown = Cause(("org.apache.iceberg.exceptions.CommitStateUnknownException",), "who knows")
    found = judged([Cause(("java.lang.RuntimeException",)), refused, unknown])
    assert found is not None
    assert found.what == "the catalog did not answer whether it committed"


class Work:
    """Raises these, one after the other, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("loader.retries.time.sleep", found.append)
    return found


def test_pauses_grow_until_the_run_has_none_left(pauses: list[float]) -> None:
    retries, work = Retries(20), Work(*[ConnectionError("x")] * 9)
    with pytest.raises(ConnectionError):
        retries.call(work)
    assert pauses == [1, 2, 4, 8, 5]
    again = Work(ConnectionError("x"))
    with pytest.raises(ConnectionError):
        retries.call(again)
    assert again.calls == 1


def test_an_unknown_error_is_tried_three_times(pauses: list[float]) -> None:
    assert Retries().call(Work(KeyError("x"), KeyError("x"))) == "done"
    work = Work(*[KeyError("x")] * 3)
    with pytest.raises(KeyError):
        Retries().call(work)
    assert (work.calls, pauses) == (3, [1, 2, 1, 2])


def test_what_the_loader_raises_is_final_at_once(pauses: list[float]) -> None:
    for error in (StagedDataError("x"), RetryableError("x")):
        work = Work(error)
        with pytest.raises(type(error)):
            Retries().call(work)
        assert work.calls == 1
    assert pauses == []
