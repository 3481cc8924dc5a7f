"""The XA events of a log: a group is prepared, then committed or rolled back."""

from __future__ import annotations

from typing import NamedTuple


class Prepared(NamedTuple):
    """A group that ends in XA_PREPARE: its bytes, whether it has rows of captured tables, and whether it is skipped."""

    xid: str
    file: str
    start: int
    end: int
    captured: bool
    skipped: bool = False


class Decided(NamedTuple):
    """An XA COMMIT or XA ROLLBACK, with the seqno and commit time (microseconds) of its own transaction."""

    xid: str
    file: str
    end: int
    commit: bool
    seqno: int
    committed: int


XaEvent = Prepared | Decided
