"""The comparison of tables that keep more than the rows of now finds what is wrong."""

from __future__ import annotations

from tests.chaos.modes import live_rows, replayed, wrongly_deleted


def test_a_history_is_done_again_in_the_order_of_the_log() -> None:
    changes = [((1, 0), "I", (1, "a")), ((1, 0), "I", (2, "b")), ((7, 2), "U", (1, "c")), ((5, 9), "D", (1, "a")),
               ((7, 1), "I", (1, "b")), ((9, 0), "D", (2, "b")), ((9, 1), "I", (3, "b"))]  # fmt: skip
    order, ops, rows = zip(*changes, strict=True)
    assert sorted(replayed(rows, order, ops, [0])) == [(1, "c"), (3, "b")]


def test_a_newer_load_begins_a_history_anew() -> None:
    changes = [((1, 0), "I", (1, "a")), ((1, 0), "I", (2, "b")), ((5, 0), "I", (2, "c")), ((5, 0), "D", (2, "b")),
               ((5, 1), "I", (9, "x")), ((6, 0), "I", (3, "d"))]  # fmt: skip
    order, ops, rows = zip(*changes, strict=True)
    assert sorted(replayed(rows, order, ops, [0], loaded=5)) == [(2, "c"), (3, "d")]


def test_rows_that_are_marked_are_not_on_the_server() -> None:
    rows, deleted = [(1, "a"), (2, "b"), (3, "c")], [False, True, True]
    assert live_rows(rows, deleted) == [(1, "a")]
    assert wrongly_deleted(rows, deleted, [0], [(1, "a"), (4, "b")]) == set()
    assert wrongly_deleted(rows, deleted, [0], [(1, "a"), (3, "x")]) == {(3,)}
