"""The events of XA transactions in a log: a group is prepared, and a prepared group is decided."""

from __future__ import annotations

from typing import NamedTuple


class Prepared(NamedTuple):
    """A group that ends in XA_PREPARE: its bytes, if rows of captured tables are in it, and if it is skipped."""

    xid: str
    file: str
    start: int
    end: int
    captured: bool
    skipped: bool = False


class Decided(NamedTuple):
    """An XA COMMIT or XA ROLLBACK: the seqno and commit time (microseconds) of its own transaction."""

    xid: str
    file: str
    end: int
    commit: bool
    seqno: int
    committed: int


XaEvent = Prepared | Decided
