"""The rules of a merge in a few lines, and what makes them safe: logs may be cut and merged in any way.

Every log of up to six changes is tried. That Spark does the same is tested on random ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

State = dict[str, int]
Change = tuple[str, str, int]  # op, key, value

OPS = [(op, key) for op in "IUD" for key in "ab"]
STATES: list[State] = [{}, {"a": -1}, {"b": -2}, {"a": -1, "b": -2}]


def replayed(state: State, log: Iterable[Change]) -> State:
    """One change after the other; that of a row that is there already, or is not, is as good as any."""
    rows = dict(state)
    for op, key, value in log:
        if op == "D":
            rows.pop(key, None)
        else:
            rows[key] = value
    return rows


def merged(state: State, log: Sequence[Change]) -> State:
    """Rows of changed keys go, those whose last change is no deletion come."""
    last = {key: (op, value) for op, key, value in log}
    kept = {key: value for key, value in state.items() if key not in last}
    return kept | {key: value for key, (op, value) in last.items() if op != "D"}


def every_log(longest: int) -> Iterable[list[Change]]:
    for size in range(longest + 1):
        for ops in product(OPS, repeat=size):
            yield [(op, key, place) for place, (op, key) in enumerate(ops)]


def test_a_merge_is_the_replay_of_its_log() -> None:
    cases = 0
    for log in every_log(6):
        for state in STATES[:: 1 if len(log) < 6 else 3]:
            assert merged(state, log) == replayed(state, log)
            cases += 1
    assert cases > 100_000


def test_a_log_is_merged_in_pieces_as_it_is_at_once_and_again_as_it_is_once() -> None:
    for log in every_log(4):
        for state in STATES:
            whole = merged(state, log)
            assert merged(whole, log) == whole
            for cut in range(len(log) + 1):
                assert merged(merged(state, log[:cut]), log[cut:]) == whole


def test_rows_without_a_key_are_counted_in_pieces_as_they_are_at_once() -> None:
    def net(bag: Counter[str], log: Sequence[str]) -> Counter[str] | None:
        """None: a row that should go is not there."""
        found = Counter(bag)
        for change in log:
            found[change[1]] += 1 if change[0] == "I" else -1
        return +found if min(found.values(), default=0) >= 0 else None

    changes = [op + row for op in "ID" for row in "xy"]
    for bag in (Counter(), Counter("x"), Counter("xxy")):
        for log in (log for size in range(7) for log in product(changes, repeat=size)):
            whole = net(bag, log)
            for cut in range(len(log) + 1):
                first = net(bag, log[:cut])
                # A log of the server never takes a row that is not there, wherever it is cut.
                if first is not None:
                    assert net(first, log[cut:]) == whole
