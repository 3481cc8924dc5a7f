"""The smallest and the largest key among records, as bounds for the files that a merge reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from loader.native_collapse.last_records import NotSupportedNatively, check_keys


class KeyEnds(NamedTuple):
    """The smallest and largest value of the first key column as Python objects; None without rows."""

    low: Any
    high: Any


def key_ends(records: pa.Table, key: Sequence[str]) -> KeyEnds:
    """Return the ends of the first of the key columns.

    Raises:
        NotSupportedNatively: a key has a NULL, or an end is a value that Python does not have.
    """
    check_keys(records, key)
    ends = pc.min_max(records[key[0]])
    try:
        return KeyEnds(ends["min"].as_py(), ends["max"].as_py())
    except (ValueError, OverflowError) as error:
        raise NotSupportedNatively("a key is of the year 0, which Python does not have") from error


def join_ends(parts: Iterable[KeyEnds]) -> tuple[str | None, str | None]:
    """Return the ends of all parts as texts, bytes as hex; None without rows."""
    found = [part for part in parts if part.low is not None]
    if not found:
        return None, None
    return _text(min(part.low for part in found)), _text(max(part.high for part in found))


def count_deleted(records: pa.Table) -> int:
    """Return the number of records whose op is D."""
    return pc.sum(pc.equal(records["_op"], "D")).as_py() or 0


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return str(value.replace(tzinfo=None)) if hasattr(value, "tzinfo") else str(value)
