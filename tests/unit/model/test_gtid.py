"""GTID sets: both servers' forms, and the laws of sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.errors import DataError, UsageError
from loader.model.gtid import (
    MariadbGtid,
    MariadbGtidSet,
    MysqlGtid,
    MysqlGtidSet,
    mariadb_set,
    mysql_set,
    parse_gtid_set,
    parse_owned_gtids,
    source_of,
)

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4f22fa47-71ca-11e1-9e33-c80aa9429562"

numbers = st.integers(1, 30)
sources = st.sampled_from([A, B, f"{A}:blue", f"{A}:red_1"])
parts = st.tuples(sources, numbers, numbers).map(lambda p: (p[0], min(p[1:]), max(p[1:])))
mysql_sets = st.lists(parts, max_size=8).map(mysql_set)
mariadb_gtids = st.builds(MariadbGtid, st.integers(0, 3), st.integers(1, 3), st.integers(1, 20))
mariadb_sets = st.lists(mariadb_gtids, max_size=6).map(mariadb_set)


def members(found: MysqlGtidSet) -> set[tuple[str, int]]:
    """Every GTID of a set, by asking for each that could be."""
    candidates = [(s, n) for s in (A, B, f"{A}:blue", f"{A}:red_1") for n in range(33)]
    return {(s, n) for s, n in candidates if MysqlGtid(s, n) in found}


@given(st.lists(parts, max_size=8))
def test_a_set_holds_exactly_the_numbers_of_its_ranges(given_parts: list[tuple[str, int, int]]) -> None:
    expected = {(s, n) for s, first, last in given_parts for n in range(first, last + 1)}
    assert members(mysql_set(given_parts)) == expected


@given(mysql_sets)
def test_a_set_reads_back_from_its_text(found: MysqlGtidSet) -> None:
    assert parse_gtid_set(str(found)) == found
    assert hash(parse_gtid_set(str(found))) == hash(found)


@given(mysql_sets, mysql_sets)
def test_differences_and_subsets_are_those_of_the_members(one: MysqlGtidSet, other: MysqlGtidSet) -> None:
    assert members(one.without(other)) == members(one) - members(other)
    assert (one <= other) == (members(one) <= members(other))


@given(mariadb_sets)
def test_a_mariadb_set_reads_back_from_its_text(found: MariadbGtidSet) -> None:
    assert parse_gtid_set(str(found)) == (found if found.newest else MysqlGtidSet())


@given(mariadb_sets, mariadb_gtids)
def test_a_mariadb_set_holds_what_comes_before_in_the_domain(found: MariadbGtidSet, gtid: MariadbGtid) -> None:
    newest = found.newest.get(gtid.domain)
    assert (gtid in found) == (newest is not None and gtid.sequence <= newest.sequence)


@given(mariadb_sets, mariadb_sets)
def test_a_mariadb_set_is_within_another_when_no_domain_reaches_further(
    one: MariadbGtidSet, other: MariadbGtidSet
) -> None:
    reached = {domain: gtid.sequence for domain, gtid in other.newest.items()}
    further = {d for d, gtid in one.newest.items() if gtid.sequence > reached.get(d, 0)}
    assert set(one.without(other).newest) == further
    assert (one <= other) == (not further)


def test_the_forms_that_servers_write() -> None:
    text = f"{A.upper()}:1-5:7, {B}:3:blue:1-2:9:red:4 ,\n {A}:6"
    found = parse_gtid_set(text)
    assert str(found) == f"{A}:1-7,{B}:3:blue:1-2:9:red:4"
    assert MysqlGtid(f"{B}:blue", 9) in found
    assert MysqlGtid(B, 9) not in found
    assert MariadbGtid(0, 1, 3) not in found
    assert str(parse_gtid_set("1-2-3,0-1-100,0-2-90")) == "0-1-100,1-2-3"
    assert parse_gtid_set("") == MysqlGtidSet()
    assert source_of(bytes.fromhex(A.replace("-", "")), "blue") == f"{A}:blue"


@pytest.mark.parametrize(
    "text", ["x", A, f"{A}:", f"{A}:0", f"{A}:5-3", f"{A}:1:-tag:2", f"{A}:1:blue", "1-2-3,x", f"{A}:1,0-1-1", "0-1"]
)
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a GTID set"):
        parse_gtid_set(text)


@pytest.mark.parametrize(
    ("text", "owned"),
    [
        ("", {}),
        (f"{A}:7#12", {MysqlGtid(A, 7): 12}),
        (f"{A}:9000002#104:9000001#103", {MysqlGtid(A, 9000002): 104, MysqlGtid(A, 9000001): 103}),
        # As MySQL 9.7 writes the GTIDs of two servers: the second UUID begins right behind thread 14.
        (f"{A}:5#14{B}:2#11:1#10", {MysqlGtid(A, 5): 14, MysqlGtid(B, 2): 11, MysqlGtid(B, 1): 10}),
        (f"{A}:5#14{A}:red_1:5#15", {MysqlGtid(A, 5): 14, MysqlGtid(f"{A}:red_1", 5): 15}),
        (f"{A}:1#2:blue:9#13:7#12,\n{B}:1#3", {
            MysqlGtid(A, 1): 2, MysqlGtid(f"{A}:blue", 9): 13, MysqlGtid(f"{A}:blue", 7): 12, MysqlGtid(B, 1): 3,
        }),
    ],
)  # fmt: skip
def test_the_gtids_that_threads_own(text: str, owned: dict[MysqlGtid, int]) -> None:
    assert parse_owned_gtids(text) == owned


@pytest.mark.parametrize("text", ["x", f"{A}", f"{A}:1", f"{A}:1#", f"{A}:-:1#2", f"1#2{A}:1#2", f"{A}x:1#2"])
def test_another_form_of_owned_gtids_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="unknown form"):
        parse_owned_gtids(text)
