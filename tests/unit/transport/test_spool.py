"""A spool is read while it fills: nothing before it is there, errors where the bytes would be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event

import pytest

from loader.errors import GapError, SourceUnavailable, StoreUnavailable
from loader.transport.spool import Spool


@pytest.fixture
def spool() -> Iterator[Spool]:
    with TemporaryFile() as file:
        yield Spool(file)


def read(spool: Spool, offset: int, size: int) -> bytes:
    spool.seek(offset)
    block = bytearray(size)
    got = spool.readinto(memoryview(block))
    return bytes(block[:got])


def test_a_reader_waits_for_the_bytes_it_asks_for(spool: Spool) -> None:
    go_on, written = Event(), []

    def fill(spool: Spool) -> None:
        spool.write(0, b"head", ready=100)
        assert go_on.wait(20)
        written.append(True)
        spool.write(100, b"first")
        spool.write(105, b"second")

    spool.fill(fill, 111)
    assert spool.read(4) == b"head"
    assert not written
    go_on.set()
    found = b""
    while len(found) < 11:
        found += read(spool, 100 + len(found), 4)
    assert found == b"firstsecond"
    assert read(spool, 111, 10) == b""
    spool.join()


def test_what_the_filler_raises_the_reader_raises_behind_the_bytes_before_it(spool: Spool) -> None:
    def fill(spool: Spool) -> None:
        spool.write(0, b"whole")
        raise SourceUnavailable("the server does not answer")

    spool.fill(fill, 100)
    assert read(spool, 0, 100) == b"whole"
    for _ in range(2):
        with pytest.raises(SourceUnavailable):
            read(spool, 5, 1)


def test_an_empty_range_ends_at_once(spool: Spool) -> None:
    spool.fill(lambda spool: spool.write(0, b"form", ready=50), 50)
    assert read(spool, 0, 4) == b"form"
    assert read(spool, 50, 4) == b""


def test_a_full_disk_is_raised_in_the_reader(tmp_path: Path) -> None:
    with open("/dev/full", "wb", buffering=0) as file:  # noqa: PTH123 - as a disk that takes nothing
        spool = Spool(file)
        spool.fill(lambda spool: spool.write(0, b"x" * 10), 10)
        with pytest.raises(StoreUnavailable, match="local disk") as caught:
            read(spool, 0, 10)
        assert "No space left" in caught.value.why


def test_what_is_put_again_must_be_what_is_there(spool: Spool) -> None:
    spool.write(0, b"head", ready=100)
    spool.write(100, b"one two")
    spool.write(104, b"two three")
    assert spool.ready == 113
    spool.write(100, b"one")
    assert spool.ready == 113
    assert read(spool, 100, 20) == b"one two three"
    with pytest.raises(GapError, match="another log since") as caught:
        spool.write(104, b"TWO")
    assert caught.value.where == {"position": "104"}
    assert read(spool, 100, 20) == b"one two three"
