"""What the loader may refuse: reasons in its own words. Any other error of a run is a failure of the test."""

from __future__ import annotations

import re
from typing import Any

REASONS = []
"""Patterns over `what` and `why` of an error. Each stops one table, and its printed cure must lead to equal tables."""


def is_known(error: dict[str, Any]) -> bool:
    """Whether an error is on the list, or one of the surroundings that a retry can help."""
    text = f"{error['what']} {error['why']}"
    return bool(error.get("retryable")) or any(re.search(one, text) for one in REASONS)
