"""Where the log begins to hold a table that was never loaded."""

from __future__ import annotations

import pytest

from loader.errors import UnsupportedError
from loader.materialise.plan.lifetimes import TableOrigin, find_new_life, find_origin
from loader.model.table import TableName
from loader.staging.documents import Barrier, Manifest, StagedFile
from tests.integration.materialise.staged_writer import IDENTITY, number, position

NAME = TableName("shop", "t")
CREATE, MAYBE, DROP = "CREATE TABLE t (id INT)", "CREATE TABLE IF NOT EXISTS t (id INT)", "DROP TABLE t"
AWAY, BACK = "RENAME TABLE t TO u", "RENAME TABLE u TO t"
SWAP = "RENAME TABLE t TO x, u TO t, x TO u"
UNLOGGED = "UPDATE t SET id = 2"
END = number(9, 0)


def interval(file: int, *entries: str | int) -> Manifest:
    """One log file with statements, and with a staged record for each number, at offsets 1000, 2000, ..."""
    offsets = [1000 * (place + 1) for place in range(len(entries))]
    found = zip(offsets, entries, strict=True)
    barriers = [barrier(file, offset, entry) for offset, entry in found if isinstance(entry, str)]
    records = [number(file, offset) for offset, entry in zip(offsets, entries, strict=True) if isinstance(entry, int)]
    files = [staged(min(records), max(records), len(records))] if records else []
    return Manifest(
        source="shop",
        generation="g1",
        identity=IDENTITY,
        start=position(file, 4),
        stop=position(file + 1, 4),
        start_seqno=number(file, 4),
        stop_seqno=number(file + 1, 4),
        files=tuple(files),
        schemas={},
        barriers=tuple(barriers),
        loader_version="0",
    )


def barrier(file: int, offset: int, statement: str) -> Barrier:
    return Barrier(
        seqno=number(file, offset),
        position=position(file, offset),
        statement=statement,
        database="shop",
        sql_mode=0,
        mariadb=False,
        tables=("shop.t",),
    )


def staged(first: int, last: int, rows: int) -> StagedFile:
    return StagedFile(
        key="k",
        schema_name="shop",
        table="t",
        schema_id="s",
        inserts=rows,
        updates=0,
        deletes=0,
        bytes=1,
        sha256="",
        min_seqno=first,
        max_seqno=last,
    )


@pytest.mark.parametrize(
    ("intervals", "last", "first", "dropped"),
    [
        ([(CREATE, 1)], 1000, 1000, False),
        ([(1,)], None, None, False),
        ([(MAYBE, 1)], None, None, False),
        ([(DROP, MAYBE, 1)], 2000, 2000, False),
        ([(CREATE, 1, DROP)], 1000, 1000, True),
        ([(CREATE, 1, DROP, CREATE, 1)], 4000, 1000, False),
        ([(CREATE, 1, DROP, MAYBE, 1)], 4000, 1000, False),
        ([(CREATE, 1, DROP), (CREATE, 1, DROP)], 10_000_001_000, 1000, True),
        ([(CREATE,), (1,), (1, DROP, CREATE, 1)], 20_000_003_000, 1000, False),
        ([(1, DROP, CREATE, 1)], 3000, None, False),
        ([(1,), (DROP, CREATE, 1)], 10_000_002_000, None, False),
        ([(DROP, CREATE, 1)], 2000, 2000, False),
        ([(1, DROP)], None, None, True),
        ([(CREATE, 1, AWAY, BACK, 1)], 1000, 1000, False),
        ([(1, AWAY, CREATE, 1, DROP, CREATE)], 6000, None, False),
        ([(CREATE, 1, AWAY, CREATE, 1)], 1000, 1000, False),
        ([(CREATE, 1, DROP, CREATE, 1, AWAY), (CREATE, 1)], 4000, 1000, False),
        ([(CREATE, 1, SWAP, 1)], 1000, 1000, False),
        ([(CREATE, 1, DROP, CREATE, 1, SWAP, 1)], 4000, 1000, False),
    ],
)
def test_origins(intervals: list[tuple[str | int, ...]], last: int | None, first: int | None, dropped: bool) -> None:
    manifests = [interval(file + 1, *entries) for file, entries in enumerate(intervals)]

    def seqno(place: int | None) -> int | None:
        return None if place is None else number(1 + place // 10_000_000_000, place % 10_000_000_000) - 1

    for every_life, expected in ((False, last), (True, first)):
        found = find_origin(NAME, reversed(manifests), 0, END, every_life=every_life)
        assert (found.seqno, found.dropped) == (seqno(expected), dropped)


@pytest.mark.parametrize(
    ("entries", "last", "first"),
    [((1,), 500, 500), ((1, DROP, CREATE, 1), 3000, 500), ((DROP, MAYBE, 1), 2000, 500), ((1, DROP), 500, 500)],
)
def test_a_table_that_is_known_to_be_made_before(entries: tuple[str | int, ...], last: int, first: int) -> None:
    for every_life, expected in ((False, last), (True, first)):
        made = number(1, 500) - 1
        found = find_origin(NAME, [interval(1, *entries)], number(1, 600), END, made=made, every_life=every_life)
        assert found.seqno == number(1, expected) - 1


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ((1, UNLOGGED), None),
        ((UNLOGGED, 1, DROP), 3000),
        ((UNLOGGED, DROP, CREATE, 1), 3000),
        ((DROP, MAYBE, UNLOGGED), 1000),
        ((UNLOGGED, AWAY), 2000),
        ((UNLOGGED, BACK), 2000),
    ],
)
def test_a_new_life_makes_earlier_statements_of_no_account(
    entries: tuple[str | int, ...], expected: int | None
) -> None:
    found = find_new_life(NAME, [interval(1, *entries)], 0, END)
    assert found == (None if expected is None else number(1, expected))


def test_rows_that_are_not_known_concern_their_own_life_alone() -> None:
    found = find_origin(NAME, [interval(1, UNLOGGED, DROP, CREATE, 1)], 0, END, every_life=False)
    assert found == TableOrigin(number(1, 3000) - 1, dropped=False, last=number(1, 3000) - 1)
    for entries, every_life in (((CREATE, UNLOGGED), False), ((CREATE, UNLOGGED, DROP, CREATE), True)):
        with pytest.raises(UnsupportedError):
            find_origin(NAME, [interval(1, *entries)], 0, END, every_life=every_life)


@pytest.mark.parametrize(
    ("intervals", "last", "first", "dropped"),
    [
        ([(CREATE,), (1,)], None, None, False),
        ([(CREATE, 1, DROP), (1,)], None, None, False),
        ([(1,), (CREATE, 1)], 10_000_001_000, None, False),
        ([(), (CREATE, 1)], 10_000_001_000, 10_000_001_000, False),
        ([(DROP,), (MAYBE, 1)], None, None, False),
        ([(CREATE, 1), (1, DROP)], None, None, True),
    ],
)
def test_statements_before_an_unread_part_of_the_log_do_not_count(
    intervals: list[tuple[str | int, ...]], last: int | None, first: int | None, dropped: bool
) -> None:
    manifests = [interval(file + 1, *entries) for file, entries in enumerate(intervals)]
    for every_life, place in ((False, last), (True, first)):
        expected = None if place is None else number(1 + place // 10_000_000_000, place % 10_000_000_000) - 1
        found = find_origin(NAME, reversed(manifests), 0, END, unread_until=number(2, 4), every_life=every_life)
        assert (found.seqno, found.dropped, found.dropped_at > 0) == (expected, dropped, dropped)


def test_a_table_that_did_not_exist_after_an_unread_part_of_the_log() -> None:
    manifests = [interval(1, CREATE, 1), interval(2, MAYBE, 1)]
    for shown, seqno in ((manifests, number(2, 1000) - 1), (manifests[:1], None)):
        found = find_origin(NAME, reversed(shown), 0, END, made=0, unread_until=number(2, 4), every_life=False)
        assert (found.seqno, found.dropped_at) == (seqno, 0 if seqno else number(2, 4))
