"""Named points before and after each outside effect, where a test can kill or halt the process.

`LOADER_FAILPOINT=<name>` in the environment kills the run at that point with SIGKILL, like a power cut.
`LOADER_FAILPOINT=<name>:stop` halts it there with SIGSTOP. A test sends SIGCONT after other runs have overtaken it.
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
    """Kill or halt this process if the environment names this point.

    Raises:
        ValueError: there is no point of this name.
    """
    if name not in POINTS:
        raise ValueError(f"unknown failpoint {name!r}")
    wanted, _, halt = os.environ.get("LOADER_FAILPOINT", "").partition(":")
    if wanted == name:
        os.kill(os.getpid(), signal.SIGSTOP if halt == "stop" else signal.SIGKILL)
