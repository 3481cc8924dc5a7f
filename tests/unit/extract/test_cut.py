"""A task's file cut at every byte: a range ends at the last whole transaction before the cut, or fails by its name.

A task may see less of a file than the driver did: on another machine, a mount of it is behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.errors import LoaderError
from loader.extract.log_ranges import whole_segment
from loader.extract.range_task import RangeExtractor
from loader.store.local import LocalStore
from loader.transport.base import LogLags
from loader.transport.file import FileTransport
from tests.unit.extract.intervals import FILE, plan_of
from tests.unit.pipeline.site import shop

LOG, ENDS = shop(2)
DATA = bytes(LOG.data)


def staged(folder: Path, stop: int) -> tuple[dict[str, bytes], LoaderError | None]:
    """The files that a range up to there leaves, by name, and what it fails with."""
    store = LocalStore(f"file://{folder}/staging", durable=False)
    error = None
    try:
        extractor = RangeExtractor(plan_of(DATA, 4, stop), "a", FileTransport(str(folder)), store)
        extractor.extract(whole_segment(FILE, 1, 4, stop, 4096))
    except LoaderError as raised:
        error = raised
    files = {info.key: store.get(info.key) for info in store.list("shop/")}
    store.remove("shop/")
    return files, error


@pytest.fixture
def whole(tmp_path: Path) -> dict[int, dict[str, bytes]]:
    """What a range up to the end of each transaction stages of the whole file."""
    (tmp_path / FILE).write_bytes(DATA)
    found = {stop: staged(tmp_path, stop) for stop in ENDS}
    assert all(files and error is None for files, error in found.values())
    return {stop: files for stop, (files, _) in found.items()}


def test_a_range_ends_at_the_last_whole_transaction_before_the_cut(
    whole: dict[int, dict[str, bytes]], tmp_path: Path
) -> None:
    for cut in range(len(DATA)):
        (tmp_path / FILE).write_bytes(DATA[:cut])
        before = [stop for stop in ENDS if stop <= cut]
        if before:
            assert staged(tmp_path, before[-1]) == (whole[before[-1]], None), f"cut at {cut}"
        beyond = ENDS[len(before)] if len(before) < len(ENDS) else 0
        if beyond:
            files, error = staged(tmp_path, beyond)
            assert files == {}, f"cut at {cut}"
            assert error is not None and error.where["file"] == FILE
            assert isinstance(error, LogLags) or cut < LOG.events[1][0], f"cut at {cut}: {error!r}"
