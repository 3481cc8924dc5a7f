"""What a network does to requests: nothing half-written is seen, a create has one answer, an error says what to do."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event

import pytest

import loader.s3
import loader.store.hdfs
from infra.hdfs import HdfsServer
from infra.s3server import S3Server
from infra.servers.process import wait_until
from loader.errors import StoreUnavailable
from loader.store.base import ObjectInfo, ObjectNotFound, Store
from loader.store.hdfs import HdfsRemote
from loader.store.registry import open_store
from loader.store.remote import RemoteStore
from loader.store.s3 import S3Remote
from tests.contract.conftest import hdfs_user, new_bucket
from tests.contract.faults import HOST, Fault, FaultyNetwork, faulty

pytestmark = pytest.mark.integration
BUSY = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Length: 71\r\n\r\n"
    b"<Error><Code>SlowDown</Code><Message>reduce your rate</Message></Error>"
)


@dataclass(frozen=True)
class Place:
    """A store behind networks that fail, and what its requests look like there.

    Attributes:
        commit: the network, and the request by which a created object appears.
        upload: where the bytes of an object go.
        reading: where they come from.
    """

    store: Store
    direct: Store
    impatient: Store
    commit: tuple[FaultyNetwork, str]
    upload: tuple[FaultyNetwork, str]
    reading: tuple[FaultyNetwork, str]


@pytest.fixture
def impatient_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that do not wait a minute for a reply."""
    monkeypatch.setattr(loader.s3, "_TIMEOUT_SECONDS", 2)
    monkeypatch.setattr(loader.store.hdfs, "_TIMEOUT_SECONDS", 2)


@pytest.fixture(params=["s3", "hdfs"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as cleanup:
        if request.param == "s3":
            server: S3Server = request.getfixturevalue("s3")
            network = cleanup.enter_context(faulty(server.port))
            root = f"{new_bucket(server)}/staging?path_style=true&endpoint=http://{HOST}"
            store = open_store(f"{root}:{network.port}")
            assert store.create("ready", b"")  # so that the probe is done
            yield Place(
                store, open_store(f"{root}:{server.port}"), RemoteStore(S3Remote(f"{root}:{network.port}"), 1),
                (network, "^PUT .*If-None-Match"), (network, "^PUT "), (network, "^GET "),
            )  # fmt: skip
            return
        assert request.param == "hdfs", request.param
        hdfs: HdfsServer = request.getfixturevalue("hdfs_server")
        data = cleanup.enter_context(faulty(hdfs.data_web_port))
        names = cleanup.enter_context(faulty(hdfs.web_port, {hdfs.data_web_port: data.port}))
        root = f"{hdfs.address}/{uuid.uuid4().hex}?user={hdfs_user()}&webhdfs=http://{HOST}"
        yield Place(
            open_store(f"{root}:{names.port}"), open_store(f"{root}:{hdfs.web_port}"),
            RemoteStore(HdfsRemote(f"{root}:{names.port}"), 1),
            (names, "^PUT .*op=RENAME"), (data, "^PUT .*op=CREATE"), (data, "^GET .*op=OPEN"),
        )  # fmt: skip


def written(store: Store, key: str, data: bytes) -> None:
    with store.writing(key) as sink:
        sink.write(data)


@pytest.mark.parametrize("kind", ["cut", "refuse", "drop", "twice"])
def test_an_upload_that_fails_is_sent_again(place: Place, kind: str) -> None:
    network, upload = place.upload
    data = bytes(range(256)) * 1000
    times = 1 if kind == "twice" else 2
    network.fail(Fault(upload, kind, times))
    written(place.store, "a/part.csv", data)
    assert not network.pending
    assert place.direct.get("a/part.csv") == data
    # If a reply is lost, S3 is asked for the object before it is sent again, and has it.
    network.fail(Fault(upload, kind, 1 if kind == "drop" else times))
    assert place.store.create("a/plan.json", data) is True
    assert place.direct.get("a/plan.json") == data
    assert [info.key for info in place.direct.list("a/")] == ["a/part.csv", "a/plan.json"]


def test_an_upload_that_is_cut_for_good_is_never_seen(place: Place) -> None:
    network, upload = place.upload
    data = bytes(300_000)
    for act in (
        lambda: written(place.impatient, "a/part.csv", data),
        lambda: place.impatient.create("a/plan.json", data),
    ):
        network.fail(Fault(upload, "cut"))
        with pytest.raises(StoreUnavailable) as caught:
            act()
        assert caught.value.retryable
        assert caught.value.why
        assert "run again" in caught.value.hint
    assert list(place.direct.list("a/")) == []
    for key in ("a/part.csv", "a/plan.json"):
        with pytest.raises(ObjectNotFound):
            place.direct.get(key)


@pytest.mark.parametrize("kind", ["drop", "twice"])
def test_a_create_whose_reply_was_lost_is_known_as_its_own(place: Place, kind: str) -> None:
    network, commit = place.commit
    network.fail(Fault(commit, kind))
    assert place.store.create("a/plan.json", b"mine") is True
    assert place.direct.get("a/plan.json") == b"mine"
    assert place.store.create("a/plan.json", b"mine") is False, "the same bytes by another create are another's"


def test_a_lost_reply_to_a_create_that_came_second_is_another_s(place: Place) -> None:
    network, commit = place.commit
    assert place.direct.create("a/plan.json", b"same bytes") is True
    network.fail(Fault(commit, "drop"))
    assert place.store.create("a/plan.json", b"same bytes") is False


def test_a_create_that_another_overtakes_after_its_reply_was_lost(place: Place) -> None:
    """The reply is lost before the server does anything, and another is there before it is asked again."""
    network, commit = place.commit
    won = []
    network.fail(Fault(commit, "answer", meanwhile=lambda: won.append(place.direct.create("a/plan.json", b"theirs"))))
    assert place.store.create("a/plan.json", b"mine") is False
    assert won == [True]
    assert place.direct.get("a/plan.json") == b"theirs"


def test_a_create_that_is_late_loses(place: Place) -> None:
    network, commit = place.commit
    won = []
    network.fail(Fault(commit, "delay", meanwhile=lambda: won.append(place.direct.create("a/plan.json", b"theirs"))))
    assert place.store.create("a/plan.json", b"mine") is False
    assert won == [True]


@pytest.mark.parametrize("what", ["commit", "upload"])
def test_a_request_that_arrives_after_its_repetition_changes_nothing(
    impatient_clients: None, place: Place, what: str
) -> None:
    network, request = getattr(place, what)
    late = Event()
    network.fail(Fault(request, "delay", meanwhile=late.wait))
    assert place.store.create("a/plan.json", b"mine") is True
    assert place.direct.create("a/plan.json", b"theirs") is False
    late.set()
    assert wait_until(lambda: network.done == len(network.heads), 20)
    assert place.direct.get("a/plan.json") == b"mine"
    assert list(place.direct.list("a/")) == [ObjectInfo("a/plan.json", 4, datetime.now(UTC))]
    assert place.direct.create("a/plan.json", b"theirs") is False


@pytest.mark.parametrize("act", ["create", "write"])
def test_half_of_a_late_upload_reaches_nothing(impatient_clients: None, place: Place, act: str) -> None:
    """It arrives when its repetition is whole, but does not yet have its name."""
    network, upload = place.upload
    late = Event()
    data = bytes(range(256)) * 1000

    def release() -> None:
        before = network.done
        late.set()
        assert wait_until(lambda: network.done > before, 20)

    commit, request = place.commit
    network.fail(Fault(upload, "cut", meanwhile=late.wait))
    commit.fail(Fault(request if act == "create" else request.split(" .*If")[0], "delay", meanwhile=release))
    if act == "create":
        assert place.store.create("a/one", data) is True
    else:
        written(place.store, "a/one", data)
    assert not commit.pending
    assert place.direct.get("a/one") == data


def test_nothing_is_seen_while_an_upload_is_under_way(place: Place) -> None:
    network, upload = place.upload
    seen: list[list[ObjectInfo]] = []
    network.fail(Fault(upload, "delay", meanwhile=lambda: seen.append(list(place.direct.list("a/")))))
    written(place.store, "a/part.csv", b"x")
    assert seen == [[]]


@pytest.mark.parametrize("kind", ["shorten", "drop", "refuse"])
def test_a_reading_that_is_cut_is_done_again(place: Place, kind: str) -> None:
    network, reading = place.reading
    data = bytes(range(256)) * 1000
    written(place.direct, "a/part.csv", data)
    network.fail(Fault(reading, kind, times=2))
    assert place.store.get("a/part.csv") == data
    network.fail(Fault(reading, kind, times=2))
    with place.store.reading("a/part.csv") as file:
        assert file.read() == data
    for act in (place.impatient.get, lambda key: place.impatient.reading(key).__enter__()):
        network.fail(Fault(reading, kind))
        with pytest.raises(StoreUnavailable):
            act("a/part.csv")


def test_a_busy_server_is_asked_again(place: Place) -> None:
    acts: list[tuple[str, Callable[[], object], object]] = [
        ("^PUT", lambda: place.store.create("a/one", b"x"), True),
        ("^PUT", lambda: written(place.store, "a/two", b"y"), None),
        ("^GET", lambda: place.store.get("a/one"), b"x"),
        ("^GET", lambda: [info.key for info in place.store.list("a/")], ["a/one", "a/two"]),
        ("^GET", lambda: place.store.folders("a/"), ()),
        ("^DELETE", lambda: place.store.delete("a/one"), None),
    ]
    network, _ = place.commit
    for request, act, expected in acts:
        network.fail(Fault(request, "answer", times=3, reply=BUSY))
        assert act() == expected
        assert not network.pending
    assert [info.key for info in place.direct.list("a/")] == ["a/two"]


def test_a_server_that_stays_busy_is_an_error_that_a_retry_can_mend(place: Place) -> None:
    network, commit = place.commit
    network.fail(Fault(commit, "answer", reply=BUSY))
    with pytest.raises(StoreUnavailable) as caught:
        place.impatient.create("a/one", b"x")
    assert caught.value.retryable
    assert caught.value.where["key"].endswith("/a/one")
