"""Changes of a table between the plan of its initial load and the first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loader.initial_load.documents import LoadPlan
from loader.initial_load.load_planner import plan_load


def change_after_plan(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let a change happen right after each load is planned."""

    def planned(*arguments: Any) -> LoadPlan:
        plan = plan_load(*arguments)
        change()
        return plan

    monkeypatch.setattr("loader.initial_load.run.plan_load", planned)
