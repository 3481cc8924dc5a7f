"""Row events in fragments stage the same text as whole ones, row offsets included; invalid groups are refused."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.binlog import index as indexes
from loader.binlog import walk as w
from loader.binlog.events.compressed_events import uncompress_event
from loader.binlog.events.fragments import Group, row_event
from loader.errors import BinlogFormatError, LoaderError, UnsupportedError
from tests.unit.binlog.builder import LogBuilder
from tests.unit.binlog.events.test_compressed_events import payload, zipped
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.fragments import bodies, fragmented, of, of_bytes, parts_of, without_seqno, written
from tests.unit.binlog.reading import outcome, staged, walked

ORDERS = Table("shop", "orders", (integer("id"), varchar("name", 4000)))
ITEMS = Table("shop", "items", (integer("id"), integer("line")), key=(0, 1))
Parts = list[tuple[bytes, bytes]]


def log_of(count: int = 3, *, checksum: bool = True, text: str = "text") -> bytes:
    """Transactions of several statements and two tables."""
    log = LogBuilder(server="12.3.1-MariaDB-log", checksum=checksum)
    for number in range(1, count + 1):
        log.mariadb_gtid(number)
        log.table_map(ORDERS)
        log.write(ORDERS, (number, text), (-number, None), kind=23, last=False)
        log.table_map(ITEMS, 101)
        log.delete(ITEMS, (number, 1), table_id=101, kind=25)
        log.table_map(ORDERS)
        log.update(ORDERS, ((number, text), (number, "new")), ((-number, None), (100 + number, text)), kind=24)
        log.xid()
    return bytes(log.data)


LOG = log_of()
LONGEST = max(len(body) - 17 for header, body in parts_of(LOG, of(1)) if header[4] == 172)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("count", range(1, LONGEST + 1))
def test_any_number_of_fragments_is_staged_as_the_event_uncut(count: int, checksum: bool) -> None:
    plain = log_of(checksum=checksum)
    cut = fragmented(plain, of(count))
    assert len(without_seqno(staged(plain))) == 2
    assert without_seqno(staged(cut)) == without_seqno(staged(plain))
    index = walked(cut)
    parts = parts_of(plain, of(count))
    assert index.counts[172] == sum(header[4] == 172 for header, _ in parts)
    assert [int(index.counts[kind]) for kind in (23, 24, 25)] == [3, 3, 3]
    assert index.counts[256] == len(cut) - 4


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=900), st.integers(1, 4), st.integers(20, 500), st.integers(20, 400))
def test_wherever_blocks_of_the_log_end(text: str, count: int, most: int, block: int) -> None:
    plain = log_of(count, text=text)
    cut = fragmented(plain, of_bytes(most))
    assert without_seqno(staged(cut, blocks=range(block, len(cut), block))) == without_seqno(staged(plain))


def test_the_fields_are_in_the_order_of_the_server() -> None:
    log = LogBuilder(server="12.3.1-MariaDB-log")
    log.mariadb_gtid()
    log.table_map(ORDERS)
    plain = LogBuilder(checksum=False)
    plain.write(ORDERS, (7, "seven"), kind=23)
    event = bytes(plain.data[plain.events[-1][0] :])
    log.event(172, bytes.fromhex("02000000 01000000 01") + len(event).to_bytes(8, "little") + event[:30])
    log.event(172, bytes.fromhex("02000000 02000000 00") + event[30:])
    log.xid()
    assert [line[5:] for line in staged(bytes(log.data)).of("shop.orders")] == [["7", "seven"]]


def test_rows_of_fragments_are_ordered_among_all_rows_of_their_transaction() -> None:
    log = LogBuilder(server="12.3.1-MariaDB-log")
    log.mariadb_gtid()
    for number in range(6):
        log.table_map(ORDERS)
        log.write(ORDERS, (number, "x" * 300), (number + 100, "y" * 300), kind=23)
    log.xid()
    plain = bytes(log.data)
    # Every other one is left as it is.
    cut = fragmented(plain, lambda event: of_bytes(25)(event) if event[30] % 2 else ())
    assert walked(cut).counts[[23, 172]].tolist() == [6, walked(cut).counts[172]]
    assert 0 < walked(cut).counts[172] < walked(fragmented(plain, of_bytes(25))).counts[172]
    offsets = [int(str(line[2])) for line in staged(cut).of("shop.orders")]
    assert offsets == sorted(set(offsets))
    assert without_seqno(staged(cut)) == without_seqno(staged(plain))


def compressed_log() -> bytes:
    """Row events that a server compressed, one of each type that MariaDB writes."""
    log = LogBuilder(server="12.3.1-MariaDB-log")
    for number, kind in enumerate((23, 24, 25)):
        log.mariadb_gtid(number)
        log.table_map(ORDERS)
        plain = LogBuilder(checksum=False)
        rows = [ORDERS.image((number, "a" * 500)), ORDERS.image((number, "b" * 500))]
        plain.rows(kind, ORDERS, rows)
        body = bytes(plain.data[plain.events[-1][0] + 19 :])
        head = 8 + 1 + (2 if kind == 24 else 1)
        log.event(kind + 143, body[:head] + zipped(body[head:]))
        log.xid()
    return bytes(log.data)


@pytest.mark.parametrize("most", [1, 7, 33, 1000])
def test_compressed_row_events_are_put_together_before_they_are_expanded(most: int) -> None:
    plain = compressed_log()
    cut = fragmented(plain, of_bytes(most))
    assert len(staged(plain).of("shop.orders")) == 5
    assert without_seqno(staged(cut)) == without_seqno(staged(plain))


@pytest.mark.parametrize("most", [1, 50, 3000])
def test_rows_that_the_server_left_uncompressed_under_a_compressed_type(most: int) -> None:
    parts = []
    for header, body in parts_of(fragmented(compressed_log(), of(1)), of(1)):
        if header[4] == 172:
            event = body[17:]
            whole = uncompress_event(event[4], event[:19], event[19:])
            whole = whole[:4] + event[4:5] + whole[5:]
            parts += [(header, each) for each in bodies(whole, of_bytes(most)(whole))]
        else:
            parts.append((header, body))
    cut = written(LOG, parts)
    found = [[line[0], *line[5:]] for line in staged(cut).of("shop.orders")]
    assert found == [[line[0], *line[5:]] for line in staged(compressed_log()).of("shop.orders")]


def changed(change: Callable[[Parts], object], count: int = 4) -> LoaderError:
    """What comes of a log with fragments, so many of each row event, that was changed."""
    parts = parts_of(LOG, of(count))
    change(parts)
    found = outcome(written(LOG, parts))
    assert isinstance(found, LoaderError), found
    assert found.where["file"] == "binlog.000001"
    assert found.hint
    return found


def place(number: int) -> int:
    """Where the fragment stands in the list of events, from 0 on, of the first row event."""
    return 2 + number


def redone(parts: Parts, which: int, **fields: int) -> None:
    """Other fields of a fragment of the first row event."""
    header, body = parts[place(which)]
    total, mine, flags = struct.unpack_from("<IIB", body)
    head = struct.pack("<IIB", fields.get("total", total), fields.get("number", mine), fields.get("flags", flags))
    if "size" in fields:
        body = body[:9] + struct.pack("<Q", fields["size"]) + body[17:]
    parts[place(which)] = (header, head + body[9:])


def test_a_group_with_nothing_changed_is_one() -> None:
    assert not isinstance(outcome(written(LOG, parts_of(LOG, of(4)))), LoaderError)


@pytest.mark.parametrize("number", range(4))
def test_a_lost_fragment_is_refused(number: int) -> None:
    error = changed(lambda parts: parts.pop(place(number)))
    assert isinstance(error, BinlogFormatError)
    if number < 3:
        assert error.what == f"fragment {number + 2} of 4 of a row event is out of order: need {number + 1} of 4"
    else:
        assert error.what == "a row event lacks fragments: TABLE_MAP follows 3 of 4"


@pytest.mark.parametrize("number", range(4))
def test_a_repeated_fragment_is_refused(number: int) -> None:
    error = changed(lambda parts: parts.insert(place(number), parts[place(number)]))
    assert isinstance(error, BinlogFormatError)
    assert f"fragment {number + 1} of 4 of a row event is out of order: need" in error.what


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)])
def test_swapped_fragments_are_refused(one: int, other: int) -> None:
    def swap(parts: Parts) -> None:
        parts[place(one)], parts[place(other)] = parts[place(other)], parts[place(one)]

    error = changed(swap)
    assert isinstance(error, BinlogFormatError)
    assert f"fragment {other + 1} of 4 of a row event is out of order: need {one + 1} of 4" in error.what


@pytest.mark.parametrize("kind", [2, 3, 4, 16, 19, 23, 160, 166])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_may_stand_between_fragments(kind: int, number: int) -> None:
    def put(parts: Parts) -> None:
        header = parts[0][0]
        parts.insert(place(number), (header[:4] + bytes([kind]) + header[5:], bytes(40)))

    assert f"follows {number} of 4" in changed(put).what


@pytest.mark.parametrize("by", [-300, -1, 1, 300, 1 << 33])
def test_a_size_that_lies_is_refused(by: int) -> None:
    whole = len(parts_of(LOG, of(1))[2][1]) - 17
    error = changed(lambda parts: redone(parts, 0, size=max(0, whole + by)))
    assert isinstance(error, UnsupportedError if by > 1 << 32 else BinlogFormatError)
    assert "row event" in error.what and "bytes" in error.what


@pytest.mark.parametrize(
    ("number", "fields"),
    [
        (0, {"total": 0}), (0, {"total": 3}), (0, {"total": 5}), (0, {"total": 1}), (0, {"number": 0}),
        (0, {"number": 2}), (1, {"total": 5}), (1, {"number": 3}), (1, {"flags": 1}), (0, {"flags": 0}),
        (0, {"flags": 3}), (1, {"flags": 2}), (3, {"total": 0xFFFFFFFF, "number": 0xFFFFFFFF}),
    ],
)  # fmt: skip
def test_fields_that_do_not_fit_are_refused(number: int, fields: dict[str, int]) -> None:
    error = changed(lambda parts: redone(parts, number, **fields))
    unknown = fields.get("flags", 0) > 1
    assert isinstance(error, UnsupportedError if unknown else BinlogFormatError)


@pytest.mark.parametrize("size", range(17))
def test_an_event_too_short_for_its_fields_is_refused(size: int) -> None:
    def shorten(parts: Parts) -> None:
        header, body = parts[place(0)]
        parts[place(0)] = (header, body[:size])

    assert isinstance(changed(shorten), BinlogFormatError)


@pytest.mark.parametrize("kind", [0, 2, 15, 16, 19, 20, 39, 40, 165, 172, 173])
def test_fragments_hold_a_row_event_and_nothing_else(kind: int) -> None:
    def retype(parts: Parts) -> None:
        header, body = parts[place(0)]
        parts[place(0)] = (header, body[:21] + bytes([kind]) + body[22:])

    error = changed(retype, count=2)
    assert isinstance(error, BinlogFormatError)
    assert "which is not a row event" in error.what
    with pytest.raises(BinlogFormatError, match="too short for its header"):
        row_event(bytes(26))


def relength(parts: Parts, by: int) -> None:
    """Another length in the header of the first row event."""
    header, body = parts[place(0)]
    length = int.from_bytes(body[26:30], "little") + by
    parts[place(0)] = (header, body[:26] + length.to_bytes(4, "little") + body[30:])


@pytest.mark.parametrize("by", [-8, -5, -3, -1, 1, 4, 1000])
def test_a_row_event_must_be_as_long_as_its_header_says(by: int) -> None:
    error = changed(lambda parts: relength(parts, by), count=2)
    assert isinstance(error, BinlogFormatError)
    assert "but its header says" in error.what


def test_the_length_may_count_no_checksum() -> None:
    parts = parts_of(LOG, of(2))
    relength(parts, -4)
    assert without_seqno(staged(written(LOG, parts))) == without_seqno(staged(LOG))


def test_a_fragment_inside_a_compressed_transaction_is_refused() -> None:
    plain = log_of(1, checksum=False)
    (header, _), *rest = parts_of(plain, of(2))
    begin = (header[:4] + b"\2" + header[5:], bytes(13) + b"\0BEGIN")
    inside = written(plain, [begin, *rest])
    inside = inside[4 + int.from_bytes(inside[13:17], "little") :]
    log = LogBuilder()
    log.gtid()
    log.event(40, payload(inside))
    error = outcome(bytes(log.data))
    assert isinstance(error, BinlogFormatError)
    assert error.what == "a compressed event holds another compressed event, or a fragment of an event"


def test_fragments_need_a_transaction_and_a_table_map() -> None:
    for lost, words in ((0, "outside a transaction"), (1, "no table map")):
        error = changed(lambda parts, lost=lost: parts.pop(lost))  # type: ignore[misc]
        assert isinstance(error, BinlogFormatError)
        assert words in error.what


def test_a_damaged_byte_anywhere_is_found() -> None:
    cut = fragmented(log_of(1), of(3))
    first = next(at for at in range(4, len(cut)) if cut[at + 4] == 172 and cut[at : at + 4] == cut[4:8])
    for at in range(first, len(cut)):
        damaged = bytearray(cut)
        damaged[at] ^= 0x41
        assert isinstance(outcome(bytes(damaged)), LoaderError), at


def test_a_group_adds_up() -> None:
    plain = log_of(1)
    group = Group()
    starts = []
    for header, body in parts_of(plain, of(3))[2:5]:
        size = 19 + len(body) + 4
        assert not group.whole
        starts.append(group.add(header[:9] + size.to_bytes(4, "little") + header[13:] + body, 4))
    assert (group.whole, group.total, group.seen, group.size, group.held) == (True, 3, 3, group.size, group.size)
    assert starts == [36, 28, 28]


def test_a_transaction_of_very_many_row_events_in_fragments(monkeypatch: pytest.MonkeyPatch) -> None:
    log = LogBuilder(server="12.3.1-MariaDB-log")
    log.mariadb_gtid()
    log.table_map(ORDERS)
    for number in range(40):
        log.write(ORDERS, (number, "x" * number), kind=23, last=False)
    log.write(ORDERS, (40, None), kind=23)
    log.xid()
    plain = bytes(log.data)
    cut = fragmented(plain, of_bytes(20))
    assert len(walked(cut).rows) == 41
    monkeypatch.setattr(indexes, "LONG", 10)
    index = walked(cut)
    assert (len(index.rows), index.long) == (0, (0,))
    assert [int(at) for at in index.transactions[0, [w.T_START, w.T_END]]] == [log.events[1][0], len(cut)]
