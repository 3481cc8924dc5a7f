"""The event view of each file of the corpus: it walks the file, or is refused with the error of the staging path."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from loader.errors import LoaderError
from loader.reader.events import Event, GtidEvent, PreviousGtidsEvent, RowsEvent
from loader.reader.gtids import read_tagged_gtid
from loader.reader.log import open_log
from tests.corpus.corpus import RUST, SERVER, names, needs_corpus, read
from tests.unit.binlog.reading import FILE, Staged, outcome, staged

pytestmark = needs_corpus
CUT = {"the interval does not end at the end of an event": "the log ends inside an event"}

PLAIN = {165: 2, 166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}


def viewed(log: bytes, folder: Path, tables: tuple[str, ...] = ()) -> tuple[list[Event], LoaderError | None]:
    """The events of a log as a closed file, and what stopped them."""
    (folder / FILE).write_bytes(log)
    found: list[Event] = []
    try:
        with open_log(str(folder / FILE), live=False, tables=tables) as opened:
            for event in opened:
                assert not isinstance(event, RowsEvent) or len(event.rows) >= 0
                found.append(event)
    except LoaderError as error:
        return found, error
    return found, None


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("captured", [True, False])
def test_the_view_gives_what_staging_gives(name: str, captured: bool, tmp_path: Path) -> None:
    log = read(name)
    expected = outcome(log, captured=lambda _: captured, nameless=True)
    events, error = viewed(log, tmp_path, () if captured else ("no.table",))
    if isinstance(expected, LoaderError):
        assert error is not None
        assert type(error) is type(expected)
        assert error.what == CUT.get(expected.what, expected.what)
        assert error.where.get("position") == expected.where.get("position")
        return
    assert error is None
    assert sum(event.header.size for event in events if event.header.inner < 0) == len(log) - 4
    assert _texts(events) == _staged(log, expected, captured)
    counted = Counter(event.header.type for event in events)
    for compressed, plain in PLAIN.items():
        counted[plain] += counted[compressed]  # which the walk counts as both
    assert [counted[kind] for kind in range(256)] == expected.index.counts[:256].tolist()


def _texts(events: list[Event]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for event in events:
        if isinstance(event, RowsEvent) and event.staged:
            found[str(event.table)] = found.get(str(event.table), b"") + event.staged
    return found


def _staged(log: bytes, expected: Staged, captured: bool) -> dict[str, bytes]:
    assert len(expected.index.rows) >= len(expected.text)
    found = staged(log, every_update=True, captured=lambda _: captured, nameless=True).text
    return {str(schema.name): text for schema, text in found.items()}


def test_the_tagged_gtids_that_the_file_s_own_test_asserts() -> None:
    log = read(f"{RUST}/binlog_transaction_with_GTID_TAG.000001")
    found = read_tagged_gtid(log[245 + 19 : 245 + 83 - 4])
    assert str(found.gtid) == "55778904-0299-11f1-b1b8-4ef0c4956feb:mytag:3"
    assert (found.last_committed, found.sequence_number) == (0, 1)
    assert found.immediate_commit == found.original_commit
    assert found.immediate_commit // 1_000_000 == int.from_bytes(log[245:249], "little")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("binlog_transaction_previous_GTID_no_tag.000001", "b9b88c66-0755-11f1-9899-4a9da94c4d71:1-2"),
        ("binlog_transaction_with_GTID_TAG.000001", "55778904-0299-11f1-b1b8-4ef0c4956feb:1-13:mytag:1-2"),
    ],
)
def test_the_sets_before_a_file(name: str, text: str, tmp_path: Path) -> None:
    events, _ = viewed(read(f"{RUST}/{name}"), tmp_path, ("no.table",))
    (found,) = (event.gtids for event in events if isinstance(event, PreviousGtidsEvent))
    assert str(found) == text


def test_a_gtid_of_an_old_server_without_times(tmp_path: Path) -> None:
    events, error = viewed(read(f"{SERVER}/binlog_transaction_with_GTID.000001"), tmp_path)
    assert error is None
    gtids = [event for event in events if isinstance(event, GtidEvent)]
    assert [(event.gtid.number, event.immediate_commit) for event in gtids if hasattr(event.gtid, "number")] == [
        (number, 0) for number in range(1, len(gtids) + 1)
    ]
    assert gtids
