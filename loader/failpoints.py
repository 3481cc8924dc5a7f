"""Named points before and after each outside effect, where a test can kill the process, or stop it for a while.

A run is killed at a point by `LOADER_FAILPOINT=<name>` in its environment, as a power cut would: SIGKILL, no clean-up.
`LOADER_FAILPOINT=<name>:stop` halts it there (SIGSTOP), until a SIGCONT finds it long overtaken.
"""

from __future__ import annotations

import os
import signal

POINTS = (
    "plan.before",
    "plan.after",
    "part.before",
    "part.after",
    "manifest.before",
    "manifest.after",
    "table.before",
    "branch.after",
    "columns.after",
    "stage.after",
    "delete.after",
    "insert.after",
    "publish.before",
    "publish.after",
    "compact.after",
    "expire.after",
    "quarantine.before",
    "quarantine.after",
    "published.before",
    "published.after",
)


def failpoint(name: str) -> None:
    """Kill or halt this process when the environment names this point; otherwise do nothing."""
    if name not in POINTS:
        raise ValueError(f"unknown failpoint {name!r}")
    wanted, _, halt = os.environ.get("LOADER_FAILPOINT", "").partition(":")
    if wanted == name:
        os.kill(os.getpid(), signal.SIGSTOP if halt == "stop" else signal.SIGKILL)
