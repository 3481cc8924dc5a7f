"""Labels of ENUM and SET that a server may treat as equal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def label_shape(label: str) -> str:
    """Return a form in which labels are equal if any collation may treat them as equal."""
    return "".join(c for c in unicodedata.normalize("NFKD", label.casefold()) if c.isalnum())


def may_be_equal(labels: Sequence[str]) -> bool:
    """Return whether a collation may treat two of the labels as equal. Servers refuse this in strict mode only."""
    return len(set(map(label_shape, labels))) < len(labels)
