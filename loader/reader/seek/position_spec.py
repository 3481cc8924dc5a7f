"""Places in a log as people write them, before the log is searched.

`begin`; `end`; `binlog.000054:123`; lognum and logpos, `54:123`; a seqno, `54000000000123`; a GTID set; a time,
`2026-01-31T12:00:00Z` (UTC if it has no zone). The prefixes `gtid:` and `time:` say which form a text has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from loader.errors import UsageError
from loader.model.gtid import GtidSet, parse_gtid_set
from loader.model.position import SEQNO_UNIT, Position

_NUMBERS = re.compile(r"(\d+)[:/](\d+)")
_FILE = re.compile(r"(?P<file>.*[^\d:].*|.+\..+):(?P<pos>\d+)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_GTIDS = re.compile(r"\s*(\d+-\d+-\d+|[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?)[\s\S]*")


@dataclass(frozen=True)
class Begin:
    """The first byte of the oldest file."""


@dataclass(frozen=True)
class End:
    """The current end of the log."""


@dataclass(frozen=True)
class At:
    """An offset in a file, by the file's name; if it is empty, by its number."""

    file: str
    lognum: int
    logpos: int


@dataclass(frozen=True)
class After:
    """The first transaction outside a GTID set."""

    gtids: GtidSet


@dataclass(frozen=True)
class Since:
    """The first transaction committed at a time or later, in microseconds since 1970."""

    micros: int


Place = Begin | End | At | After | Since


def parse_place(text: str) -> Place:
    """Parse the text of a place.

    Raises:
        UsageError: the text is not a place.
    """
    words: dict[str, Place] = {"begin": Begin(), "end": End()}
    if text in words:
        return words[text]
    if text.startswith("gtid:"):
        return After(parse_gtid_set(text.removeprefix("gtid:")))
    if text.startswith("time:") or _TIME.fullmatch(text):
        return Since(_micros(text.removeprefix("time:")))
    if text.isascii() and text.isdigit() and int(text) >= SEQNO_UNIT:
        return At("", *divmod(int(text), SEQNO_UNIT))
    if found := _NUMBERS.fullmatch(text):
        return At("", int(found[1]), int(found[2]))
    if _GTIDS.fullmatch(text):
        return After(parse_gtid_set(text))
    if found := _FILE.fullmatch(text):
        return At(found["file"], 0, int(found["pos"]))
    raise UsageError(
        f"{text!r} is not a place in a log",
        hint="write begin, end, binlog.000054:123, 54:123, a seqno, a GTID set, or a time like 2026-01-31T12:00:00Z",
    )


def place_of(place: Place | Position | datetime | str) -> Place:
    """Return the place of a text, a position or a time; a time without a zone is in UTC."""
    if isinstance(place, str):
        return parse_place(place)
    if isinstance(place, Position):
        return At("", place.lognum, place.logpos)
    return Since(_since(place)) if isinstance(place, datetime) else place


def _micros(text: str) -> int:
    try:
        return _since(datetime.fromisoformat(text))
    except ValueError as error:
        raise UsageError(
            f"{text!r} is not a time", why=str(error), hint="write it like 2026-01-31T12:00:00Z"
        ) from error


def _since(moment: datetime) -> int:
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    elapsed = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
