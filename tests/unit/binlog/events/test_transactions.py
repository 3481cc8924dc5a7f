"""The walk finds transactions, row events under their table maps, and statements."""

from __future__ import annotations

import re

import pytest

from loader.binlog import index
from loader.binlog import walk as w
from loader.errors import BinlogFormatError
from loader.model.table import TableName
from tests.unit.binlog.builder import DELETE, MICROS, SECONDS, UPDATE, WRITE, LogBuilder
from tests.unit.binlog.fields import Table, integer, varchar
from tests.unit.binlog.reading import UNIT, staged, walked

A = Table("shop", "a", (integer("id"), varchar("v")))
B = Table("shop", "b", (integer("id"),))
COMMITTED = SECONDS * 1_000_000


def transactions(log: LogBuilder) -> list[tuple[int, ...]]:
    """(start, end, commit time, rolled back) of each."""
    return [tuple(row) for row in walked(bytes(log.data)).transactions[:, : w.T_SERVER].tolist()]


def test_a_transaction_runs_from_its_gtid_to_its_xid() -> None:
    log = LogBuilder()
    first = log.end
    log.insert(A, (1, "x"))
    second = log.end
    log.insert(A, (2, "y"), number=2)
    assert transactions(log) == [(first, second, MICROS, 0), (second, log.end, MICROS, 0)]


@pytest.mark.parametrize(("end", "rolled_back"), [("COMMIT", 0), ("ROLLBACK", 1)])
def test_a_transaction_without_gtid_runs_from_begin_to_its_last_word(end: str, rolled_back: int) -> None:
    log = LogBuilder()
    start = log.query("BEGIN")
    log.table_map(A)
    log.write(A, (1, "x"))
    log.query(end, seconds=SECONDS + 5)
    assert transactions(log) == [(start, log.end, COMMITTED + 5_000_000, rolled_back)]


def test_a_statement_outside_begin_is_a_transaction_of_its_own() -> None:
    log = LogBuilder()
    bare = log.query("CREATE TABLE t (id INT)", "shop")
    middle = log.end
    log.gtid()
    named = log.query("DROP TABLE t", "shop")
    index = walked(bytes(log.data))
    assert index.transactions[:, : w.T_SERVER].tolist() == [[bare, middle, COMMITTED, 0], [middle, log.end, MICROS, 0]]
    assert index.statements[:, [w.S_OFFSET, w.S_TRANSACTION]].tolist() == [[bare, 0], [named, 1]]


def test_a_transaction_knows_its_server_and_whether_it_touches_a_marker_table() -> None:
    log = LogBuilder()
    for server_id, tables in ((1, (A,)), (4_294_967_295, (B, A)), (3, (A, B)), (0, ())):
        log.server_id = server_id
        log.begin()
        for table in tables:
            log.table_map(table)
            log.write(table, (1, "x")[: len(table.fields)])
        log.server_id = 9
        log.xid()
    index = walked(bytes(log.data), markers={TableName("shop", "b")})
    found = index.transactions[:, [w.T_SERVER, w.T_MARKED]].tolist()
    assert found == [[1, 0], [4_294_967_295, 1], [3, 1], [0, 0]]
    assert index.rows[:, w.R_TABLE].tolist() == [0, w.MARKER, 0, 0, w.MARKER]


def test_a_statement_inside_begin_belongs_to_its_transaction() -> None:
    log = LogBuilder().begin()
    inside = log.query("SAVEPOINT `x`")
    log.table_map(A)
    log.write(A, (1, "x"))
    log.xid()
    index = walked(bytes(log.data))
    assert index.statements[:, [w.S_OFFSET, w.S_TRANSACTION]].tolist() == [[inside, 0]]
    assert len(index.transactions) == 1


@pytest.mark.parametrize("kind", [33, 34])
def test_both_gtid_events_of_mysql_begin_a_transaction(kind: int) -> None:
    log = LogBuilder()
    start = log.gtid(kind=kind)
    log.query("BEGIN")
    log.xid()
    assert transactions(log) == [(start, log.end, MICROS, 0)]


def test_mariadb_s_gtid_stands_for_begin_unless_one_statement_follows() -> None:
    log = LogBuilder(server="11.4.2-MariaDB-log")
    first = log.mariadb_gtid(1)
    log.event(160, b"INSERT INTO a VALUES (1)")
    log.table_map(A)
    log.write(A, (1, "x"), kind=23)
    log.xid()
    second = log.mariadb_gtid(2, single=True)
    log.query("ALTER TABLE a ADD n INT", "shop")
    end = log.end
    log.event(161, b"\x0d\0\0\0binlog.000001")
    assert transactions(log) == [(first, second, COMMITTED, 0), (second, end, COMMITTED, 0)]


def test_rows_of_interleaved_tables_go_to_their_own_files_in_log_order() -> None:
    log = LogBuilder().begin()
    log.table_map(A, 100)
    log.table_map(B, 101)
    offsets = [
        log.write(A, (1, "x"), table_id=100, last=False),
        log.write(B, (7,), table_id=101, last=False),
        log.update(A, ((1, "x"), (1, "y")), table_id=100, last=False),
        log.delete(B, (7,), table_id=101),
    ]
    log.xid()
    result = staged(bytes(log.data))
    assert [[line[0], *line[5:]] for line in result.of("shop.a")] == [["I", "1", "x"], ["U", "1", "y"]]
    assert [[line[0], *line[5:]] for line in result.of("shop.b")] == [["I", "7"], ["D", "7"]]
    assert {line[1] for table in "ab" for line in result.of(f"shop.{table}")} == {str(UNIT + log.end)}
    assert result.index.rows[:, w.R_OFFSET].tolist() == offsets
    assert result.index.rows[:, w.R_KIND].tolist() == [WRITE, WRITE, UPDATE, DELETE]


def test_a_table_id_means_the_newest_map_of_its_statement() -> None:
    log = LogBuilder().begin()
    log.table_map(A, 100)
    log.write(A, (1, "first"), table_id=100)
    log.table_map(B, 100)
    log.write(B, (2,), table_id=100)
    log.table_map(A, 100)
    log.table_map(B, 101)
    log.write(A, (3, "third"), table_id=100, last=False)
    log.write(B, (4,), table_id=101)
    log.xid()
    result = staged(bytes(log.data))
    assert [line[5] for line in result.of("shop.a")] == ["1", "3"]
    assert [line[5] for line in result.of("shop.b")] == ["2", "4"]


@pytest.mark.parametrize("end", ["statement", "transaction"])
def test_a_table_map_is_forgotten_when_its_statement_ends(end: str) -> None:
    log = LogBuilder().begin()
    log.table_map(A)
    log.write(A, (1, "x"), last=end == "statement")
    if end == "transaction":
        log.xid()
        log.begin(2)
    at = log.write(A, (2, "y"))
    log.xid()
    with pytest.raises(BinlogFormatError, match="no table map before it") as caught:
        walked(bytes(log.data))
    assert caught.value.where == {"file": "binlog.000001", "position": str(at)}


def test_the_row_event_of_no_table_only_ends_its_statement() -> None:
    log = LogBuilder().begin()
    log.table_map(A)
    log.write(A, (1, "x"), last=False)
    log.rows(WRITE, Table("", "", ()), [], table_id=0xFFFFFF)
    log.table_map(A)
    log.write(A, (2, "y"))
    log.xid()
    assert [line[5] for line in staged(bytes(log.data)).of("shop.a")] == ["1", "2"]


def test_tables_that_stage_alike_keep_their_common_order() -> None:
    log = LogBuilder().begin()
    for number in range(6):
        log.table_map(A, nullable=number % 2 == 0)
        log.write(A, (number, "x"))
    log.xid()
    result = staged(bytes(log.data))
    assert [line[5] for line in result.of("shop.a")] == list("012345")
    assert len(result.text) == 1


def test_rows_of_tables_that_are_not_captured_are_indexed_and_not_decoded() -> None:
    broken = Table("shop", "b", (varchar("v", 40, 28),), key=())
    log = LogBuilder().insert(A, (1, "x")).insert(broken, (b"\xff",), number=2)
    result = staged(bytes(log.data), captured=lambda name: name.table == "a")
    assert result.index.rows[:, w.R_TABLE].tolist() == [0, w.UNCAPTURED]
    assert [line[5] for line in result.of("shop.a")] == ["1"]
    assert [str(schema.name) for schema in result.text] == ["shop.a"]


def test_counts_cover_every_event_and_byte_of_the_range() -> None:
    log = LogBuilder().insert(A, (1, "x"))
    log.stop()
    counts = walked(bytes(log.data)).counts
    assert {kind: int(counts[kind]) for kind in range(256) if counts[kind]} == {
        15: 1,
        33: 1,
        2: 1,
        19: 1,
        30: 1,
        16: 1,
        3: 1,
    }
    assert int(counts[256]) == len(log.data) - 4


def test_a_log_without_checksums_reads_the_same() -> None:
    logs = [LogBuilder(checksum=checksum).insert(A, (1, "x")) for checksum in (True, False)]
    lines = [staged(bytes(log.data)).of("shop.a") for log in logs]
    assert [line[5:] for line in lines[0]] == [line[5:] for line in lines[1]]


def damaged_orders() -> dict[str, LogBuilder]:
    """Logs whose transactions begin or end where they cannot."""
    logs = {name: LogBuilder() for name in ("gtid in transaction", "begin twice", "xid alone", "commit alone")}
    logs["gtid in transaction"].begin().gtid(2)
    logs["begin twice"].begin().query("BEGIN")
    logs["xid alone"].xid()
    logs["commit alone"].query("COMMIT")
    return logs


@pytest.mark.parametrize("name", list(damaged_orders()))
def test_a_transaction_that_begins_or_ends_where_it_cannot_is_damage(name: str) -> None:
    log = damaged_orders()[name]
    says = "a transaction begins inside another one, or ends without a beginning"
    with pytest.raises(
        BinlogFormatError, match=re.escape("a commit (XID) has no BEGIN before it") if name == "xid alone" else says
    ) as caught:
        walked(bytes(log.data))
    assert caught.value.where["position"] == str(log.events[-1][0])


@pytest.mark.parametrize("begin", ["gtid", "nothing"])
def test_a_row_event_outside_a_transaction_is_damage(begin: str) -> None:
    log = LogBuilder()
    if begin == "gtid":
        log.gtid()
    log.table_map(A)
    at = log.write(A, (1, "x"))
    with pytest.raises(BinlogFormatError, match="outside a transaction") as caught:
        walked(bytes(log.data))
    assert caught.value.where["position"] == str(at)


def test_a_range_that_ends_inside_a_transaction_is_an_error() -> None:
    log = LogBuilder().begin()
    with pytest.raises(BinlogFormatError, match="ends inside a transaction") as caught:
        walked(bytes(log.data))
    assert caught.value.where["transaction_start"] == str(log.events[1][0])


@pytest.mark.parametrize("maps", [1025, 4096, 4097])
def test_a_statement_of_many_tables(monkeypatch: pytest.MonkeyPatch, maps: int) -> None:
    monkeypatch.setattr(index, "_MOST_TABLE_IDS", 4096)
    log = LogBuilder().begin()
    for number in range(maps):
        log.table_map(B, number)
    log.write(B, (1,), table_id=7)
    log.xid()
    if maps > 4096:
        with pytest.raises(BinlogFormatError, match="more table maps than a server can write"):
            walked(bytes(log.data))
    else:
        assert len(walked(bytes(log.data)).rows) == 1


# Body of a GTID_TAGGED event of MySQL 9.7.4, of bf4b4fff-e5b1-11f1-88df-02fc00000001:blue:1; mysqlbinlog shows its time.
TAGGED = bytes.fromhex(
    "027400000002fd02969efd039503c50222c50321027d0304f1030000000204040608626c756508080a0c0c7f0b074091c960061059041283120b"
)


def test_a_tagged_gtid_begins_a_transaction_and_tells_its_commit_time() -> None:
    log = LogBuilder()
    start = log.event(42, TAGGED)
    log.query("BEGIN")
    log.xid()
    assert transactions(log) == [(start, log.end, 1795268701849355, 0)]


def test_a_tagged_gtid_cut_before_its_commit_time_is_damage() -> None:
    whole = TAGGED.index(bytes.fromhex("7f0b074091c96006")) + 8
    for size in range(len(TAGGED)):
        log = LogBuilder()
        log.event(42, TAGGED[:size])
        if size >= whole:
            log.xid()
            assert len(transactions(log)) == 1
            continue
        with pytest.raises(BinlogFormatError, match="the length in its header is impossible"):
            walked(bytes(log.data))
