"""Wait until all parts of Airflow are healthy; on failure tell which is not, and what it logged last.

usage: healthy.py URL LOGS PART=PID... (the health check, the folder of the logs, and the processes)
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path

_SECONDS = 180
_LINES = 25


def main(url: str, logs: str, *processes: str) -> None:
    """Return when all is well; exit with what is wrong otherwise."""
    pids = dict(process.split("=") for process in processes)
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        gone = [part for part, pid in pids.items() if not Path(f"/proc/{pid}").exists()]
        if gone:
            sys.exit(f"error: Airflow's {gone[0]} ended; {last_lines(Path(logs), gone[0])}")
        unwell = not_healthy(url)
        if not unwell:
            return
        time.sleep(0.5)
    sys.exit(f"error: Airflow's {unwell[0]} is not healthy yet; {last_lines(Path(logs), unwell[0])}")


def not_healthy(url: str) -> list[str]:
    """The parts that are not healthy; the server itself while it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the URL of our own server
            parts = json.load(answer)
    except OSError:
        return ["api-server"]
    return [name.replace("_", "-") for name, part in parts.items() if part["status"] != "healthy"]


def last_lines(logs: Path, part: str) -> str:
    """Where the log of a part is, and its end."""
    log = logs / f"{part}.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n    ".join([f"the end of {log}:", *lines[-_LINES:]])


if __name__ == "__main__":
    main(*sys.argv[1:])
