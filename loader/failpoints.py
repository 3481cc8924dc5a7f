"""Named points before and after each outside effect, where a test can kill or halt the process.

`LOADER_FAILPOINT=<name>` in the environment kills the run at that point with SIGKILL, like a power cut.
`LOADER_FAILPOINT=<name>:3` kills it when it comes there for the third time.
`LOADER_FAILPOINT=<name>:stop` halts it there with SIGSTOP. A test sends SIGCONT after other runs have overtaken it.
"""

from __future__ import annotations

import os
import signal
from itertools import count

POINTS = (
    "plan.before",
    "plan.after",
    "part.before",
    "part.after",
    "chunk.before",
    "chunk.after",
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
_VISITS = count(1)  # of the point that the environment names


def failpoint(name: str) -> None:
    """Kill or halt this process if the environment names this point.

    Raises:
        ValueError: there is no point of this name.
    """
    if name not in POINTS:
        raise ValueError(f"unknown failpoint {name!r}")
    wanted, _, how = os.environ.get("LOADER_FAILPOINT", "").partition(":")
    if wanted != name or (how.isdecimal() and next(_VISITS) < int(how)):
        return
    os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)
