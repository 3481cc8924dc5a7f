"""Something that happens at a failpoint of a merge in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loader.materialise import branch, building, chain, merge


def at(point: str, action: Callable[[], object], patch: pytest.MonkeyPatch) -> list[str]:
    """Do it at the first passage of a point; what is returned holds the point once it was passed."""
    passed: list[str] = []
    original = branch.failpoint

    def failpoint(name: str) -> None:
        original(name)
        if name == point and not passed:
            passed.append(name)
            action()

    for module in (branch, building, chain, merge):
        patch.setattr(module, "failpoint", failpoint)
    return passed
