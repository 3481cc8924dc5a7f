"""Data that tasks of a cluster exchange about the records of a merge: see `loader.native_collapse.key_buckets`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loader.native_collapse.key_ends import KeyEnds
from loader.staging.documents import StagedFile

Window = tuple[int, int]
"""Two seqnos. Records after the first one, up to the second one, are in the window."""


class Piece(NamedTuple):
    """Files of one schema, which a task has in memory together.

    Attributes:
        number: of the piece, from 0 on.
        files: the files.
    """

    number: int
    files: Sequence[StagedFile]

    @property
    def rows(self) -> int:
        """The number of records in the files."""
        return sum(file.rows for file in self.files)


class Counts(NamedTuple):
    """Numbers of records by op: of all records of some files, and of those in the window of seqnos."""

    all: dict[str, int]
    new: dict[str, int]

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*({op: ours[op] + theirs[op] for op in ours} for ours, theirs in zip(self, other, strict=True)))


class KeyPart(NamedTuple):
    """The last records of keys of one piece and one bucket.

    Attributes:
        piece: its number.
        records: int64, shape (records, 4), as `scan` fills it, with the number of the record's line instead of ABSENT.
        hashes: uint64, shape (records, 2), as `scan` fills it.
    """

    piece: int
    records: bytes
    hashes: bytes


class PieceCounts(NamedTuple):
    """What the first step tells the third one about a piece."""

    piece: Piece
    counts: Counts


class KeyCounts(NamedTuple):
    """The number of last records, and how many of them are deletions."""

    keys: int
    deleted: int

    def plus(self, other: KeyCounts) -> KeyCounts:
        """Return the sums."""
        return KeyCounts(self.keys + other.keys, self.deleted + other.deleted)


LineNumbers = bytes
"""Numbers of lines of one piece, uint32: those of the last records of keys."""


class PieceSummary(NamedTuple):
    """What the last records in a piece are.

    Attributes:
        counts: of all records of the piece.
        last: of its last records.
        ends: of the first key column.
    """

    counts: Counts
    last: KeyCounts
    ends: KeyEnds
