"""Events inside compressed events stage the same rows in the same order; wrong sizes are refused."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog.events import compressed_events
from loader.errors import BinlogFormatError, LoaderError, UnsupportedError
from loader.extract.log_ranges import whole_segment
from tests.unit.binlog.builder import LogBuilder, packed
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.reading import outcome, staged, walked
from tests.unit.extract.intervals import FILE, extracted, plan_of

ORDERS = Table("shop", "orders", (integer("id"), varchar("name", 4000)))
ITEMS = Table("shop", "items", (integer("id"), integer("line")), key=(0, 1))


def inner(rows: list[tuple[int, str]]) -> LogBuilder:
    """The events of a transaction after its GTID, without checksums."""
    log = LogBuilder(checksum=False)
    log.data.clear()
    log.query("BEGIN")
    for number, (key, text) in enumerate(rows):
        log.table_map(ORDERS)
        log.write(ORDERS, (key, text), (-key, text))
        if number % 3 == 0:
            log.table_map(ITEMS, 101)
            log.write(ITEMS, (key, number), table_id=101)
    log.xid()
    return log


def payload(events: bytes, *, compression: int = 0, size: int | None = None) -> bytes:
    """The body of a TRANSACTION_PAYLOAD event."""
    stored = zstandard.compress(events) if compression == 0 else events
    head = b"".join(
        packed(kind) + packed(len(packed(value))) + packed(value)
        for kind, value in ((2, compression), (3, len(events) if size is None else size), (1, len(stored)))
    )
    return head + packed(0) + stored


def zipped(content: bytes, size: int | None = None) -> bytes:
    """Bytes as MariaDB compresses them."""
    stated = len(content) if size is None else size
    return bytes([0x80 | 4]) + stated.to_bytes(4, "big") + zlib.compress(content)


ROWS = st.lists(st.tuples(st.integers(1, 1 << 30), st.text('ab\n"é', max_size=300)), max_size=20)


def of(log: bytes) -> dict[str, list[list[str | None]]]:
    """Op and columns of all records."""
    found = staged(log)
    return {name: [[r[0], *r[5:]] for r in found.of(name)] for name in ("shop.orders", "shop.items")}


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from([0, 255]), st.integers(40, 5000))
def test_a_payload_stages_what_is_in_it(
    transactions: list[list[tuple[int, str]]], compression: int, piece: int
) -> None:
    plain, log = LogBuilder(), LogBuilder()
    for number, rows in enumerate(transactions, 1):
        plain.gtid(number)
        for event in events_of(inner(rows)):
            plain.event(event[4], event[19:])
        log.gtid(number)
        log.event(40, payload(bytes(inner(rows).data), compression=compression))
    before = compressed_events.BLOCK
    try:
        compressed_events.BLOCK = piece
        assert of(bytes(log.data)) == of(bytes(plain.data))
        records = [r for name in ("shop.orders", "shop.items") for r in staged(bytes(log.data)).of(name)]
    finally:
        compressed_events.BLOCK = before
    places = [(r[1], r[2]) for r in records]
    assert len(set(places)) == len(places)
    index = walked(bytes(log.data))
    assert [int(end) for end in index.transactions[:, 1]] == [at + size for at, size, kind in log.events if kind == 40]


def events_of(log: LogBuilder) -> list[bytes]:
    return [bytes(log.data[at : at + size]) for at, size, _ in log.events[1:]]


def test_parts_and_accounts_are_those_of_the_outer_events(tmp_path: Path) -> None:
    log = LogBuilder()
    for number in range(1, 5):
        log.gtid(number)
        log.event(40, payload(bytes(inner([(number, "x" * 3000)] * 9).data), compression=255))
    plan = plan_of(bytes(log.data), part_bytes=4096)
    found = extracted(bytes(log.data), plan, tmp_path, [whole_segment(FILE, 1, 4, log.end, 4096)])
    assert found.manifest.balance is not None
    assert found.manifest.balance.bytes == log.end - 4
    assert found.manifest.balance.event_types["TRANSACTION_PAYLOAD"] == 4
    assert found.manifest.balance.row_events_staged == 4 * 12
    starts = [at for at, _, kind in log.events if kind == 40]
    orders = [key for key in found.files if "/orders/" in key]
    assert [key.rpartition("-")[2] for key in orders] == [f"{at // 4096:06d}.csv" for at in starts]


@pytest.mark.parametrize("kind", [165, 166, 167, 168, 169, 170, 171])
def test_mariadb_s_events_are_those_they_were_made_from(kind: int) -> None:
    plain = LogBuilder(server="10.11.4-MariaDB-log")
    plain.mariadb_gtid()
    plain.table_map(ORDERS)
    pairs = [((n, "a" * n), (n, "b" * 2 * n)) for n in range(1, 60)]
    whole = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}.get(kind, 30)
    if whole in (24, 31):
        plain.update(ORDERS, *pairs, kind=whole)
    else:
        plain.rows(whole, ORDERS, [ORDERS.image(row) for _, row in pairs])
    plain.query("COMMIT")
    log = LogBuilder(server="10.11.4-MariaDB-log")
    for event in [bytes(plain.data[at : at + size - 4]) for at, size, _ in plain.events[1:]]:
        body = event[19:]
        if event[4] == whole and kind != 165:
            cut = (8 if whole < 30 else 10) + 1 + (2 if whole in (24, 31) else 1)
            log.event(kind, body[:cut] + zipped(body[cut:]))
        elif event[4] == 2 and kind == 165:
            cut = len(body) - len(b"COMMIT")
            log.event(165, body[:cut] + zipped(body[cut:]))
        else:
            log.event(event[4], body)
    assert of(bytes(log.data)) == of(bytes(plain.data))
    assert len(of(bytes(plain.data))["shop.orders"]) == len(pairs)


def refused(body: bytes, kind: int = 40) -> LoaderError:
    log = LogBuilder()
    log.gtid()
    at = log.event(kind, body)
    found = outcome(bytes(log.data))
    assert isinstance(found, LoaderError), found
    assert found.where["position"] == str(at)
    return found


def test_sizes_that_lie_are_refused() -> None:
    events = bytes(inner([(1, "x")]).data)
    for body in (
        payload(events, size=len(events) - 1),
        payload(events, size=len(events) + 1),
        payload(events)[:-3],
        payload(events) + b"more",
        payload(events[:-1]),
        payload(events)[:9],
        b"",
        packed(2) + packed(1) + packed(0) + packed(0),
    ):
        assert isinstance(refused(body), BinlogFormatError)
    for size in (0, 5, 1 << 31):
        assert isinstance(refused(bytes(13) + b"\0" + zipped(b"COMMIT", size), 165), BinlogFormatError)
    assert isinstance(refused(bytes(13) + b"\0" + bytes([0x94]) + bytes(8), 165), UnsupportedError)


def test_a_bomb_is_refused_before_it_is_expanded() -> None:
    bomb = zstandard.compress(bytes(1 << 30))
    body = b"".join(packed(k) + packed(len(packed(v))) + packed(v) for k, v in ((2, 0), (3, 5000), (1, len(bomb))))
    assert "decompressed transaction differs from its stated size" in refused(body + packed(0) + bomb).what
    assert (
        "decompressed event differs from its stated size"
        in refused(bytes(13) + b"\0" + zipped(bytes(1 << 28), 6), 165).what
    )


def test_unknown_compressions_and_nesting_are_refused() -> None:
    events = bytes(inner([(1, "x")]).data)
    assert isinstance(refused(payload(events, compression=7)), UnsupportedError)
    nested = LogBuilder(checksum=False)
    nested.data.clear()
    nested.event(40, payload(events))
    assert "a compressed event holds another" in refused(payload(bytes(nested.data))).what


def test_a_damaged_outer_event_is_found_by_its_checksum() -> None:
    log = LogBuilder()
    log.gtid()
    at = log.event(40, payload(bytes(inner([(1, "abc")] * 50).data), compression=255))
    data = bytearray(log.data)
    data[at + 19 + 60 + 300] ^= 1
    found = outcome(bytes(data))
    assert isinstance(found, BinlogFormatError)
