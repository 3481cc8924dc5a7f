"""What every store does: the same suite over each of them."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loader.errors import UsageError
from loader.model.table import TableName
from loader.staging.layout import interval_folder, part_key
from loader.store import base
from loader.store import s3 as s3_store
from loader.store.base import ObjectInfo, ObjectNotFound, Store
from loader.store.local import LocalStore
from loader.store.registry import open_store
from loader.store.signed_store import SignedStore
from tests.contract.conftest import REAL, NewRoot
from tests.support.memory_store import MemoryStore

NOW = datetime.now(UTC)


@pytest.fixture(params=[*REAL, "memory", "signed"])
def store(request: pytest.FixtureRequest, new_root: NewRoot) -> Store:
    if request.param == "signed":
        return SignedStore(open_store(new_root(REAL[0])), b"0123456789abcdef", "")
    return MemoryStore() if request.param == "memory" else open_store(new_root(request.param))


@pytest.fixture(params=REAL)
def real(request: pytest.FixtureRequest, new_root: NewRoot) -> Store:
    return open_store(new_root(request.param))


def test_an_object_is_read_back_as_it_was_written(store: Store) -> None:
    assert store.create("a/b/one.json", b"\0\xff\n") is True
    assert store.get("a/b/one.json") == b"\0\xff\n"
    assert store.create("empty", b"") is True
    assert store.get("empty") == b""


def test_an_object_that_exists_is_not_created_again(store: Store) -> None:
    assert store.create("a/one", b"first") is True
    assert store.create("a/one", b"second") is False
    assert store.get("a/one") == b"first"


@pytest.mark.parametrize("kind", REAL)
def test_of_eight_who_create_at_once_one_wins(kind: str, new_root: NewRoot) -> None:
    root = new_root(kind)
    stores = [open_store(root) for _ in range(8)]
    store = stores[0]
    for turn in range(100):
        meeting = Barrier(8)

        def race(number: int, key: str = f"race/{turn}/plan.json", meeting: Barrier = meeting) -> tuple[bool, bytes]:
            meeting.wait()
            data = f"{number}".encode() * 1000
            return stores[number].create(key, data), data

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(race, range(8)))
        winners = [data for won, data in results if won]
        assert len(winners) == 1
        assert store.get(f"race/{turn}/plan.json") == winners[0]


def test_what_is_not_there_is_not_found(store: Store) -> None:
    store.create("a/one", b"x")
    for key in ("a/two", "b/one", "a/one.json"):
        with pytest.raises(ObjectNotFound) as caught:
            store.get(key)
        assert caught.value.where["key"].endswith(key)


def test_an_object_written_in_blocks_appears_at_the_end(store: Store) -> None:
    with store.writing("a/part.csv") as sink:
        sink.write(b"one,")
        sink.write(memoryview(b"two\n"))
        assert list(store.list("a/")) == []
        with pytest.raises(ObjectNotFound):
            store.get("a/part.csv")
    assert store.get("a/part.csv") == b"one,two\n"
    assert list(store.list("a/")) == [ObjectInfo("a/part.csv", 8, NOW)]


def test_an_object_without_bytes(store: Store) -> None:
    with store.writing("a/nothing"):
        pass
    assert store.get("a/nothing") == b""
    assert list(store.list("a/")) == [ObjectInfo("a/nothing", 0, NOW)]


def test_an_object_whose_writer_failed_never_appears(store: Store) -> None:
    with pytest.raises(RuntimeError, match="no more"), store.writing("a/part.csv") as sink:
        sink.write(b"half")
        raise RuntimeError("no more")
    assert list(store.list("a/")) == []
    with store.writing("a/part.csv") as sink:
        sink.write(b"whole")
    assert store.get("a/part.csv") == b"whole"


def test_writing_in_blocks_replaces_what_an_earlier_try_left(store: Store) -> None:
    for data in (b"longer than", b"short"):
        with store.writing("a/part.csv") as sink:
            sink.write(data)
    assert store.get("a/part.csv") == b"short"


def test_an_object_is_read_as_a_file(store: Store) -> None:
    store.create("a/one", bytes(range(256)) * 1000)
    with store.reading("a/one") as file:
        assert file.read(3) == b"\0\1\2"
        assert len(file.read()) == 255_997
    for key in ("a/two", "b/one"):
        with pytest.raises(ObjectNotFound), store.reading(key):
            pass


def test_ranges_of_an_object_join_up(real: Store) -> None:
    """Also where one ends exactly with the object, and where one begins behind another that was never read."""
    block = bytes(range(256)) * 4096
    for size in (8 * len(block), 8 * len(block) + 5):
        whole = (block * 9)[:size]
        with real.writing(f"ranges/{size}.csv") as sink:
            sink.write(whole)
        with real.reading(f"ranges/{size}.csv") as file:
            assert file.read() == whole
        with real.reading(f"ranges/{size}.csv") as file:
            file.seek(size - 7)
            assert file.read(100) == whole[-7:]
            assert file.read(1) == b""
            file.seek(1000)
            assert file.read(6) == whole[1000:1006]


def test_a_listing_tells_when_objects_were_written(store: Store) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)  # some stores count seconds
    store.create("a/one", b"x")
    (info,) = store.list("a/")
    assert before <= info.modified <= datetime.now(UTC) + timedelta(seconds=2)


def test_a_folder_is_removed_with_all_in_it(store: Store) -> None:
    for key in ("a/b/1", "a/b/c/2", "a/bc/3", "a/4"):
        store.create(key, b"x")
    for _ in range(2):
        store.remove("a/b/")
        assert [info.key for info in store.list("a/")] == ["a/4", "a/bc/3"]
    assert store.folders("a/") == ("bc",)


def test_a_listing_is_in_key_order_with_sizes(store: Store) -> None:
    keys = ["s/b/2", "s/a/1", "s/a-b/1", "s/a", "s/a0", "s/b/10", "t/x"]
    for key in (key for key in keys if key != "s/a"):
        store.create(key, key.encode())
    expected = sorted(key for key in keys if key.startswith("s/") and key != "s/a")
    assert list(store.list("s/")) == [ObjectInfo(key, len(key), NOW) for key in expected]


def test_a_folder_s_name_is_no_prefix_of_another_s(store: Store) -> None:
    store.create("shop/1", b"x")
    store.create("shopping/1", b"x")
    assert [info.key for info in store.list("shop/")] == ["shop/1"]


def test_folders_are_the_names_right_below(store: Store) -> None:
    for key in ("s/0001/plan.json", "s/0002/deep/er/x", "s/runs/a", "s/file.json", "t/0003/x"):
        store.create(key, b"x")
    assert store.folders("s/") == ("0001", "0002", "runs")
    assert store.folders("s/0001/") == ()
    assert store.folders("nowhere/") == ()


def test_folders_come_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (base, s3_store):
        monkeypatch.setattr(module, "PAGE_NAMES", 2)
    for name in ("0001", "0002", "0003", "0004", "0005"):
        for file in ("manifest.json", "plan.json", "a/part.csv"):
            store.create(f"s/{name}/{file}", b"x")
    store.create("s/generation.json", b"x")
    pages, after = [], ""
    while not pages or pages[-1].more:
        pages.append(store.folders_after("s/", after))
        after = pages[-1].names[-1]
    assert [page.names for page in pages[:2]] == [("0001", "0002"), ("0003", "0004")]
    assert [name for page in pages for name in page.names] == ["0001", "0002", "0003", "0004", "0005"]
    assert store.folders_after("s/", "0002").names == ("0003", "0004")
    assert store.folders_after("s/", "00021").names == ("0003", "0004")
    assert store.folders_after("nowhere/", "") == base.Page((), more=False)


def test_a_deleted_object_is_gone_and_can_be_created_again(store: Store) -> None:
    store.create("a/one", b"x")
    store.delete("a/one")
    store.delete("a/one")
    store.delete("never/was")
    assert list(store.list("a/")) == []
    assert store.create("a/one", b"y") is True


def test_an_empty_place_has_nothing(store: Store) -> None:
    assert list(store.list("a/")) == []
    assert store.folders("a/") == ()


@pytest.mark.parametrize("key", ["../outside", "a/../b", "./a", "a//b", "/etc/passwd", "", "a/", "a/."])
def test_a_key_stays_under_the_root(real: Store, key: str) -> None:
    acts = (
        lambda: real.create(key, b"x"), lambda: real.writing(key).__enter__(), lambda: real.get(key),
        lambda: real.delete(key), lambda: real.remove(f"{key}/x/"), lambda: real.reading(key).__enter__(), lambda: list(real.list(f"{key}/x/")), lambda: real.folders(f"{key}/x/"),
    )  # fmt: skip
    for act in acts:
        with pytest.raises(UsageError, match="under the store's root"):
            act()


def test_a_long_object_is_whole(real: Store) -> None:
    data = random.Random(4).randbytes(18_000_000)
    with real.writing("long/part.csv") as sink:
        for start in range(0, len(data), 3_000_000):
            sink.write(data[start : start + 3_000_000])
    assert real.get("long/part.csv") == data
    with real.reading("long/part.csv") as file:
        assert file.read() == data
    assert real.create("long/plan.json", data) is True
    assert real.get("long/plan.json") == data


@pytest.mark.integration
def test_a_listing_longer_than_a_page(new_root: NewRoot) -> None:
    real = open_store(new_root("s3"))
    keys = [f"many/{number % 7}/{number:05d}" for number in range(1100)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda key: real.create(key, b"x"), keys))
    assert [info.key for info in real.list("many/")] == sorted(keys)
    assert real.folders("many/") == tuple("0123456")


NAMES = [
    "a",
    "A",
    "..",
    "!",
    "~",
    "a/b",
    "a.b",
    " ",
    "#LATEST",
    "a?b=c&d",
    "a%2Fb",
    "é",
    "e\u0301",
    "漢",
    "😀",
    "\\",
    "x" * 64,
    "é" * 64,
    "'\"`",
    "a:b",
]


def test_any_table_s_name_has_a_place_of_its_own(real: Store) -> None:
    folder = interval_folder("a source/..", "0001", 54 * 10**12)
    keys = {
        part_key(folder, "a", TableName(schema, table), "id", "1"): (schema, table)
        for schema in NAMES[:6]
        for table in NAMES
    }
    assert len(keys) == 6 * len(NAMES)
    for key, name in keys.items():
        with real.writing(key) as sink:
            sink.write(repr(name).encode())
    assert [info.key for info in real.list(folder.split("/")[0] + "/")] == sorted(keys)
    assert all(real.get(key) == repr(name).encode() for key, name in keys.items())


SEGMENT = st.text("abcXYZ019_-!~", min_size=1, max_size=8)
KEYS = st.dictionaries(st.tuples(SEGMENT, SEGMENT).map("/".join), st.binary(max_size=50), max_size=12)


def stores_alike(objects: dict[str, bytes], *stores: Store) -> None:
    for store in stores:
        for key, data in objects.items():
            assert store.create(f"root/{key}", data)
        assert {info.key: info.size for info in store.list("root/")} == {
            f"root/{k}": len(v) for k, v in objects.items()
        }
        assert all(store.get(f"root/{key}") == data for key, data in objects.items())
        assert store.folders("root/") == tuple(sorted({key.split("/")[0] for key in objects}))


@settings(deadline=None, max_examples=40)
@given(objects=KEYS)
def test_any_objects_are_listed_and_read_back(
    objects: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stores_alike(objects, LocalStore(f"file://{tmp_path_factory.mktemp('store')}"), MemoryStore())


@pytest.mark.integration
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(objects=KEYS)
def test_any_objects_are_listed_and_read_back_over_a_network(objects: dict[str, bytes], new_root: NewRoot) -> None:
    stores_alike(objects, open_store(new_root("s3")), open_store(new_root("hdfs")))
